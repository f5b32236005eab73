-- Purpose: whether a text matches a schema's pattern, as in RE2, by which clients check: classes
-- such as \w are ASCII, and a dot matches no line break.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean language sql immutable set standard_conforming_strings = on as $$
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
