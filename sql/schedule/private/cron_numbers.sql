-- Purpose: the numbers that an item of a field of a cron expression stands for: *, 5,
-- 1-5, 10/15 or 1-5/2.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2), except one of years. Refuses a step wider
-- than its field: */90 in the minutes would fire every hour, which nobody intends. Raises: JQ009.
create or replace function jobq_private.cron_numbers(field integer, item text)
returns integer[] language plpgsql immutable as $$
declare
    _first constant integer := ('{0,0,0,1,1,0,1970}'::integer[])[field];
    _size constant integer := ('{60,60,24,31,12,7,230}'::integer[])[field];
    _last constant integer := _first + _size - 1;
    _words constant text[] := case field
        when 5 then '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[]
        when 6 then '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[]
    end;
    _parts constant text[] := pg_catalog.regexp_match(
        item, '^([*]|[0-9A-Z]+(?:-[0-9A-Z]+)?)(?:/([0-9]{1,4}))?$'
    );
    _step constant integer := coalesce(_parts[2], '1')::integer;
    _ends integer[] := array(
        select case
            when w.word ~ '^[0-9]{1,4}$' then w.word::integer
            else _first - 1 + pg_catalog.array_position(_words, w.word)
        end
        from pg_catalog.string_to_table(_parts[1], '-') with ordinality as w (word, n)
        order by w.n
    );
begin
    if _parts[1] = '*' then
        _ends := array[_first, _last];
    elsif pg_catalog.cardinality(_ends) = 1 then  -- 10/15 goes to the end of the field
        _ends := _ends || case when _parts[2] is null then _ends[1] else _last end;
    end if;
    perform jobq_private.check_problem('INVALID_CRON', case
        when (
            _step between 1 and case when field = 7 then 999 else _size end
            and least(_ends[1], _ends[2]) >= _first
            and greatest(_ends[1], _ends[2]) <= case when field = 6 then 7 else _last end
            and pg_catalog.num_nulls(_ends[1], _ends[2]) = 0
            and (_ends[1] <= _ends[2] or field <> 7)
        ) is not true then pg_catalog.format(
            '%s: "%s" is not valid; use %s, *, lists, ranges or steps',
            ('{second,minute,hour,day-of-month,month,day-of-week,year}'::text[])[field],
            pg_catalog.left(item, 40), (array[
                '0-59', '0-59', '0-23', '1-31, ?, L, L-3 (days before the last), 15W, LW',
                '1-12 or JAN-DEC',
                '0-7 (0 and 7 are Sunday) or SUN-SAT, ?, 5L (the last), 5#2 (the second)',
                '1970-2199'
            ])[field]
        )
    end);
    return array(
        select (g.n - _first) % _size + _first
        from pg_catalog.generate_series(
            _ends[1], _ends[2] + case when _ends[2] < _ends[1] then _size else 0 end, _step
        ) as g (n)
    );
end
$$;
