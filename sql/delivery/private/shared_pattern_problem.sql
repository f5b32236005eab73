-- Purpose: the reason why clients and deliveries, which use RE2, cannot use a pattern, or null.
-- Invariant: clients, when they store a payload spec, and deliveries detect the
-- remaining patterns that RE2 does not support.
create or replace function jobq_private.shared_pattern_problem(pattern text)
returns text language plpgsql immutable set standard_conforming_strings = on as $$
declare
    -- Escapes, without text in brackets.
    _bare constant text := regexp_replace(
        shared_pattern_problem.pattern, '\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]', 'x', 'g'
    );
    -- The same without escaped characters.
    _plain constant text := regexp_replace(
        _bare, '\\[pP]\{\^?\w+\}|\\.', 'x', 'g'
    );
begin
    if regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[1-9k]' then
        return 'back references cannot be matched in linear time';
    elsif _plain ~ '\(\?<?[=!]' then
        return 'lookarounds cannot be matched in linear time';
    elsif _plain ~ '\(\?(?!:|P?<\w+>|[imsU-]+[:)])' or _plain ~ '^\*|[*+?}]\+' then
        return 'RE2 does not support this group or repetition';
    elsif regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[^\W_aAbBCdDEfnpPQrsStvwWxz0]' then
        return 'RE2 does not support this escape';
    elsif _plain ~ '\{(\d{5,}|[2-9]\d{3}|1\d{2}[1-9]|1\d[1-9]\d|1[1-9]\d{2})[,}]' then
        return 'RE2 repeats at most 1000 times';
    elsif _bare !~ '\\[pPCQExz0]|\(\?P?<|\{[\d,]*\d{3}' then
        perform '' ~ shared_pattern_problem.pattern;
    end if;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;
