-- Purpose: the numbers that *, 5, 1-5, 10/15 or 1-5/2 stands for in a field of a cron
-- expression.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2), except one of years. Refuses a
-- step wider than its field: */90 in the minutes would fire every hour, which nobody
-- intends. Raises: JQ009.
create or replace function jobq_private.cron_numbers(field text, item text)
returns integer[]
language plpgsql
immutable
parallel safe
as $$
declare
    _base integer := case
        when field in ('day-of-month', 'month') then 1
        when field = 'year' then 1970
        else 0
    end;
    _size integer := case field
        when 'hour' then 24
        when 'day-of-month' then 31
        when 'month' then 12
        when 'day-of-week' then 7
        when 'year' then 230
        else 60
    end;
    _last integer := _base + _size - 1;
    _parts text[] := pg_catalog.regexp_match(item, case field
        when 'year' then '^([*]|[0-9]+(?:-[0-9]+)?)(?:/(0*[1-9][0-9]{0,2}))?$'
        else '^([*]|[0-9A-Z]+(?:-[0-9A-Z]+)?)(?:/([0-9]{1,4}))?$'
    end);
    _step integer := coalesce(_parts[2], '1')::integer;
    _ends integer[] := array[_base, _last];
    _word text;
    _number integer;
    _refused text := case
        when _parts is null or _step < 1 or (_step > _size and field <> 'year') then item
    end;
begin
    if _parts[1] <> '*' and _refused is null then
        _ends := '{}';
        foreach _word in array pg_catalog.string_to_array(_parts[1], '-') loop
            _number := case
                when _word ~ '^[0-9]{1,4}$' then _word::integer
                when field = 'month' then pg_catalog.array_position(
                    '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[], _word
                )
                when field = 'day-of-week' then pg_catalog.array_position(
                    '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[], _word
                ) - 1
            end;
            if (_number between _base and _last + (field = 'day-of-week')::integer) is not true then
                _refused := coalesce(_refused, _word);
            end if;
            _ends := _ends || _number;
        end loop;
        if pg_catalog.cardinality(_ends) = 1 then  -- 10/15 goes to the end of the field
            _ends := _ends || case when _parts[2] is null then _ends[1] else _last end;
        end if;
        if _ends[2] < _ends[1] and field = 'year' then
            _refused := coalesce(_refused, item);
        elsif _ends[2] < _ends[1] then
            _ends[2] := _ends[2] + _size;
        end if;
    end if;
    if _refused is not null then
        perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
            '%s: "%s" is not valid; use %s, *, lists, ranges or steps',
            field, pg_catalog.left(_refused, 40), case field
                when 'hour' then '0-23'
                when 'day-of-month' then '1-31, ?, L, L-3 (days before the last), 15W, LW'
                when 'month' then '1-12 or JAN-DEC'
                when 'day-of-week' then
                    '0-7 (0 and 7 are Sunday) or SUN-SAT, ?, 5L (the last), 5#2 (the second)'
                when 'year' then '1970-2199'
                else '0-59'
            end
        ));
    end if;
    return array(
        select (g.n - _base) % _size + _base
        from pg_catalog.generate_series(_ends[1], _ends[2], _step) as g (n)
    );
end
$$;
