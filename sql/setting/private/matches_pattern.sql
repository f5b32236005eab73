-- Purpose: whether a text has a match of a schema's pattern.
-- Invariant: as RE2 does where clients and deliveries check the same schema: classes such as
-- \w are of ASCII, and a dot is no line break. Raises: nothing.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean
language sql
immutable
parallel safe
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
