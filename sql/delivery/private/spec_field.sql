-- Purpose: the requirement for a field of an endpoint's spec, and whether a value meets
-- it.
-- Invariant: strict paths, so that an array is not taken for its elements. Reads only
-- the given path. Whether an address is reachable shows only at delivery.
create or replace function jobq_private.spec_field(
    class text, value jsonb, out meaning text, out is_met boolean
)
language plpgsql
immutable
parallel safe
set standard_conforming_strings = on
as $$
begin
    select c.meaning, value @? c.path::jsonpath into meaning, is_met
    from (
        values
        ('any', 'any JSON', '$'),
        ('text', 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
        ('fields', 'an object with a member, or a template that gives one',
            'strict $ ? ((@.type() == "object" && exists (@.*))
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('texts', 'an object of texts',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string")))'),
        ('headers', 'an object of ASCII texts without line breaks, under names of HTTP'
            || ' that are not content-length or transfer-encoding, each once',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (
                    !(@.key like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$")
                    || @.key like_regex "^(content-length|transfer-encoding)$" flag "i"
                    || @.value like_regex "[^\\t -~]" flag "s")))'),
        ('url', 'http:// or https://, a host without a user, and a port if any, of at most 8192 characters',
            'strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^https?://(?:[[][0-9a-f:.]+[]]|[^]/?#@:[[:cntrl:]]+)(?::[0-9]{0,5})?(?:(?:[/?#]|[{][{])[^[:cntrl:]]*)?$" flag "i"
                && (!(@ like_regex "^https?://[0-9]+(?:[.][0-9]+){3}(?:[:/?#]|$)" flag "i")
                    || @ like_regex "^https?://(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:[.:/?#]|$)){4}" flag "i"))'),
        ('redis url', 'redis:// or rediss:// and a host, or unix:// and a path',
            'strict $ ? (@ like_regex "^([{][{]|rediss?://|unix://([^/?#@]*@)?/)")'),
        ('topic', 'a topic of 1 to 249 letters, digits and ._-, or a template',
            'strict $ ? (@ like_regex "^[-._0-9A-Za-z]{1,249}$" && @ != "." && @ != ".."
                || @ like_regex "[{][{]")'),
        ('kafka options', 'an object of texts with the names security.protocol, sasl.mechanism,'
            || ' sasl.username, sasl.password, ssl.ca.pem, ssl.certificate.pem, ssl.key.pem,'
            || ' ssl.key.password, client.id, compression.type and linger.ms',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (!(@.key like_regex
                    "^(security[.]protocol|sasl[.](mechanisms?|username|password)|ssl[.](ca[.]pem|certificate[.]pem|key[.]pem|key[.]password)|client[.]id|compression[.]type|linger[.]ms)$"))))'),
        ('boolean', 'true or false', 'strict $ ? (@.type() == "boolean")'),
        ('method', 'GET, POST, PUT, PATCH or DELETE',
            'strict $ ? (@ like_regex "^(GET|POST|PUT|PATCH|DELETE)$")'),
        ('acks', '"0", "1" or "all"', 'strict $ ? (@ == "0" || @ == "1" || @ == "all")'),
        ('milliseconds', 'a whole number from 1 to 3600000',
            'strict $ ? (@ >= 1 && @ <= 3600000 && @ == @.floor())'),
        ('count', 'a whole number from 1, or a template that gives one',
            'strict $ ? ((@ >= 1 && @ <= 1000000000000 && @ == @.floor())
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('statuses', 'an array of HTTP status codes from 200 to 599',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "number"
                    || !(@ >= 200 && @ <= 599 && @ == @.floor()))))')
    ) as c (class, meaning, path)
    where c.class = spec_field.class;
    if class = 'headers' and is_met then
        select count(*) = count(distinct lower(k.key)) into is_met
        from jsonb_object_keys(value) as k (key);
    elsif class = 'url' and is_met then
        is_met := length(value #>> '{}') <= 8192;
    end if;
end
$$;
