-- Purpose: whether a text has a match of a schema's pattern.
-- Invariant: as RE2 does where clients and deliveries check the same schema: classes such as
-- \w are of ASCII, and a dot is no line break. Raises: nothing.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
    select matches_pattern.value collate "C" ~ case
        when matches_pattern.pattern !~ '\.' then matches_pattern.pattern
        else (
            select string_agg(case m[1] when '.' then '[^\n]' else m[1] end, '' order by n)
            from regexp_matches(
                matches_pattern.pattern, '\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]|.', 'g'
            ) with ordinality as t (m, n)
        )
    end
$$;

revoke all on function jobq_private.matches_pattern from public;

comment on function jobq_private.matches_pattern is
'Says whether a text has a match of a schema''s pattern.';
