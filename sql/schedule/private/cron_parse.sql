-- Purpose: parse a cron expression into the sets of numbers that cron_next searches.
-- Invariant: pure, so that a schedule can store the result, which the type describes. With auto,
-- expressions whose second, minute or hour begins with * count the time that passes: they skip
-- gaps and repeat in folds. Others count by the clock. Raises: 22004, JQ009.
create or replace function jobq_private.cron_parse(
    cron text, time_zone text, gap text default 'auto', fold text default 'auto'
)
returns jobq_private.cron language plpgsql immutable as $$
declare
    _every_week constant bigint := 270549121;  -- bits 0, 7, 14, 21 and 28
    _space constant text := E' \t\n\r';
    -- the C collation, because in Turkish the capital of i is not I
    _text constant text := btrim(upper(left(cron, 1001) collate "C"), _space);
    _fields text[] := regexp_split_to_array(coalesce(
        '{
            "@YEARLY": "0 0 1 1 *", "@ANNUALLY": "0 0 1 1 *", "@MONTHLY": "0 0 1 * *",
            "@WEEKLY": "0 0 * * 0", "@DAILY": "0 0 * * *", "@MIDNIGHT": "0 0 * * *",
            "@HOURLY": "0 * * * *"
        }'::jsonb ->> _text, _text
    ), '[' || _space || ']+');
    _is_interval boolean;
    _parsed jobq_private.cron;
    _item text;
    _bits bigint;
begin
    perform jobq_private.check_given('cron', num_nulls(cron));
    perform jobq_private.check_problem('INVALID_CRON', case
        when cardinality(_fields) not between 5 and 7 or length(cron) > 1000 then format(
            'expression: "%s" has %s fields and %s characters; use 5 to 7 fields and'
            ' at most 1000 characters', left(cron, 40), cardinality(_fields), length(cron)
        )
    end);
    _fields := case cardinality(_fields)
        when 5 then '0'::text || _fields || '*'::text
        when 6 then _fields || '*'::text
        else _fields
    end;
    _is_interval := '*' = any(array[left(_fields[1], 1), left(_fields[2], 1), left(_fields[3], 1)]);
    _parsed := row(
        jobq_private.cron_bits(1, _fields[1]), jobq_private.cron_bits(2, _fields[2]),
        jobq_private.cron_bits(3, _fields[3]), jobq_private.cron_bits(5, _fields[5]),
        0, 0, 0, 0, 0, 0, null,
        _fields[4] !~ '^[*?]' and _fields[6] !~ '^[*?]', time_zone,
        gap = 'run' or (gap = 'auto' and not _is_interval),
        fold = 'both' or (fold = 'auto' and _is_interval)
    );
    foreach _item in array string_to_array(regexp_replace(_fields[4], '^[?]$', '*'), ',') loop
        if _item ~ '^L(-([12]?[0-9]|30))?W?$' then
            _bits := 1::bigint << (31 - ('0' || translate(_item, '-LW', ''))::integer);
            if _item like '%W' then
                _parsed.near_last_days := _parsed.near_last_days | _bits;
            else
                _parsed.last_days := _parsed.last_days | _bits;
            end if;
        elsif _item ~ '^[0-9]{1,2}W$' then
            _parsed.near_days := _parsed.near_days | jobq_private.cron_bits(4, rtrim(_item, 'W'));
        else
            _parsed.days := _parsed.days | jobq_private.cron_bits(4, _item);
        end if;
    end loop;
    foreach _item in array string_to_array(regexp_replace(_fields[6], '^[?]$', '*'), ',') loop
        if _item ~ '^[0-9A-Z]+#[1-5]$' then
            _bits := jobq_private.cron_bits(6, split_part(_item, '#', 1));
            _parsed.weekdays := _parsed.weekdays
                | (_bits << (7 * (right(_item, 1)::integer - 1)));
        elsif _item ~ '^([0-7]|[A-Z]{3})L$' then
            _bits := jobq_private.cron_bits(6, rtrim(_item, 'L'));
            _parsed.last_weekdays := _parsed.last_weekdays | _bits;
        else
            _bits := jobq_private.cron_bits(6, _item);
            _parsed.weekdays := _parsed.weekdays | _bits * _every_week;
        end if;
    end loop;
    if _fields[7] <> '*' then
        _parsed.years := array(
            select unnest(jobq_private.cron_numbers(7, i)) from string_to_table(_fields[7], ',') as i
        );
    end if;
    perform jobq_private.check_problem('CRON_NEVER_FIRES', case
        when jobq_private.cron_next_local(_parsed, timestamp '1970-01-01') is null then format(
            'day-of-month "%s", month "%s", day-of-week "%s" and year "%s" have no day in common',
            _fields[4], _fields[5], _fields[6], _fields[7]
        )
    end);
    return _parsed;
end
$$;
