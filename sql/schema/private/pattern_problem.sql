-- Purpose: why a pattern cannot be used, or null: it must match in time linear in the text.
-- Invariant: refuses what PostgreSQL matches by backtracking (back references) or anew from each
-- place (lookarounds), as RE2 does, repeats that multiply, and comments and flavours that could
-- hide either.
create or replace function jobq_private.pattern_problem(pattern text)
returns text language plpgsql immutable strict set standard_conforming_strings = on as $$
declare
    -- Without escaped characters but digits, and without what stands in brackets.
    _bare constant text := regexp_replace(
        regexp_replace(pattern_problem.pattern, '\\[^0-9]', 'x', 'g'),
        '\[\^?\]?[^]]*\]', 'x', 'g'
    );
    _unfolded numeric;
begin
    if length(pattern_problem.pattern) > 1000 then
        return 'longer than 1000 characters';
    elsif pattern_problem.pattern ~ '^\*\*\*|\(\?#|^\(\?[a-z]*[^imnpst:=!<)]' then
        return 'comments, literal texts and other syntaxes of patterns are not supported';
    elsif _bare ~ '\\[1-9]' then
        return 'back references cannot be matched in linear time';
    elsif _bare ~ '\(\?<?[=!]' then
        return 'lookarounds cannot be matched in linear time';
    end if;
    select
        coalesce(exp(sum(ln(greatest(1, r.times))) filter (where r.is_group)), 1)
        * coalesce(max(r.times) filter (where not r.is_group), 1)
    into _unfolded
    from (
        select
            m[1] <> '' as is_group,
            greatest(m[2]::numeric, nullif(m[3], '')::numeric) as times
        from regexp_matches(_bare, '(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}', 'g') as m
    ) as r;
    if _unfolded > 256.5 then
        return 'its nested repeats multiply to more than 256';
    end if;
    perform '' ~ pattern_problem.pattern;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;
