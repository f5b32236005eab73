-- Purpose: what a field of an endpoint's spec must be, and whether a value is that.
-- Invariant: strict paths, so that an array is never taken for its elements. Only the path that is
-- asked for is read, and no group of an address captures: either would cost a tenth of a second.
-- Raises: nothing.
create or replace function jobq_private.spec_field(
    class text, value jsonb, out meaning text, out is_met boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Parts of an address, for like_regex; a template may stand for each of them.
    _label constant text :=
        '(?:[^[:cntrl:][:space:][:punct:]]|[-_%]|[{][{][^}]*[}][}]){1,63}';
    _host constant text := format('(?:[[][0-9A-Fa-f:.]+[]]|%1$s(?:[.]%1$s)*[.]?)', _label);
    _port constant text :=
        '(?:0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]'
        || '|6553[0-5])|[{][{][^}]*[}][}])';
    _number constant text := '(?:[0-9]{0,9}|[{][{][^}]*[}][}])';
    _octet constant text := '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
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
        ('url', 'http:// or https://, a host without a user, a port up to 65535, and a path, of'
            || ' at most 8192 characters; a host that is not taken in Unicode is in ASCII (xn--)',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^https?://%1$s(?::%2$s)?(?:(?:[/?#]|[{][{])[^[:cntrl:]]*)?$" flag "i" && (
                    !(@ like_regex "^https?://[0-9]+(?:[.][0-9]+){3}(?:[:/?#]|$)" flag "i")
                    || @ like_regex "^https?://%3$s(?:[.]%3$s){3}(?:[:/?#]|$)" flag "i"))$path$,
                _host, _port, _octet)),
        ('redis url', 'redis:// or rediss://, host, port and number of the database, or'
            || ' unix:// and a path, with no options but db, username, password, client_name'
            || ' and health_check_interval',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^(?:rediss?://(?:[^/?#@]*@)?(?:%s(?::%s)?)?(?:/%s)?|unix://(?:[^/?#@]*@)?/[^?]*)(?:[?](?:(?:db=%s|health_check_interval=%s|(?:username|password)=[^&]*|client_name=(?:[^&%%[:space:]]|[{][{][^}]*[}][}])*)(?:&|$))*)?$")$path$,
                _host, _port, _number, _number, _number)),
        ('servers', 'hosts with their ports, and commas between them',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^ *(?:%1$s) *(?:, *(?:%1$s) *)*$")$path$,
                format('(?:[A-Za-z_]+://)?%s(?::%s)?', _host, _port))),
        ('topic', 'a topic of 1 to 249 letters, digits and ._-, or a template',
            'strict $ ? (@ like_regex "^[-._0-9A-Za-z]{1,249}$" && @ != "." && @ != ".."
                || @ like_regex "[{][{]")'),
        ('kafka options', 'an object of texts that Kafka takes, under the names'
            || ' security.protocol, sasl.mechanism, sasl.username, sasl.password, ssl.ca.pem,'
            || ' ssl.certificate.pem, ssl.key.pem, ssl.key.password, client.id,'
            || ' compression.type and linger.ms; certificates and keys as PEM, and with'
            || ' sasl_plaintext or sasl_ssl a mechanism, a username and a password',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (!(@.key like_regex
                    "^(security[.]protocol|sasl[.](mechanisms?|username|password)|ssl[.](ca[.]pem|certificate[.]pem|key[.]pem|key[.]password)|client[.]id|compression[.]type|linger[.]ms)$")
                    || !(@.value like_regex "[{][{]") && (
                        @.key == "security.protocol" && !(@.value like_regex
                            "^(sasl_)?(plaintext|ssl)$" flag "i")
                        || @.key like_regex "^sasl[.]mechanism" && !(@.value like_regex
                            "^(PLAIN|SCRAM-SHA-(256|512))$")
                        || @.key == "compression.type" && !(@.value like_regex
                            "^(none|gzip|snappy|lz4|zstd)$")
                        || @.key == "linger.ms" && !(@.value like_regex
                            "^[0-9]{1,5}([.][0-9]{1,9})?$")
                        || @.key like_regex "^ssl[.](ca|certificate)[.]pem$" && !(@.value
                            like_regex "-----BEGIN [A-Z0-9 ]*CERTIFICATE-----")
                        || @.key == "ssl.key.pem" && !(@.value
                            like_regex "-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"))))
                && (!exists (@.keyvalue() ? (@.key == "security.protocol"
                        && @.value like_regex "^sasl_" flag "i"))
                    || exists (@.keyvalue() ? (@.key like_regex "^sasl[.]mechanisms?$"))
                    && exists (@.keyvalue() ? (@.key == "sasl.username" && @.value != ""))
                    && exists (@.keyvalue() ? (@.key == "sasl.password" && @.value != ""))))'),
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
        is_met := jobq_private.is_sendable_url(value #>> '{}');
    end if;
end
$$;

revoke all on function jobq_private.spec_field from public;

comment on function jobq_private.spec_field is
'Returns what a field of an endpoint''s spec must be, and whether a value is that.';
