-- Purpose: what a field of an endpoint's spec must be, and whether a value is that.
-- Invariant: strict paths, so that an array is never taken for its elements.
-- Raises: nothing.
create or replace function jobq_private.spec_field(
    class text, value jsonb, out meaning text, out is_met boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    select c.meaning, value @? c.path into meaning, is_met
    from (
        values
        ('any', 'any JSON', jsonpath '$'),
        ('text', 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
        ('object', 'an object', 'strict $ ? (@.type() == "object")'),
        ('texts', 'an object of texts',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string")))'),
        ('boolean', 'true or false', 'strict $ ? (@.type() == "boolean")'),
        ('method', 'GET, POST, PUT, PATCH or DELETE',
            'strict $ ? (@ like_regex "^(GET|POST|PUT|PATCH|DELETE)$")'),
        ('acks', '"0", "1" or "all"', 'strict $ ? (@ == "0" || @ == "1" || @ == "all")'),
        ('milliseconds', 'a whole number from 1 to 3600000',
            'strict $ ? (@ >= 1 && @ <= 3600000 && @ == @.floor())'),
        ('count', 'a whole number, or a template that gives one',
            'strict $ ? ((@ >= 0 && @ <= 1000000000000 && @ == @.floor())
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('statuses', 'an array of HTTP status codes',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "number"
                    || !(@ >= 100 && @ <= 599 && @ == @.floor()))))')
    ) as c (class, meaning, path)
    where c.class = spec_field.class;
end
$$;

revoke all on function jobq_private.spec_field from public;

comment on function jobq_private.spec_field is
'Returns what a field of an endpoint''s spec must be, and whether a value is that.';
