-- Purpose: parse a cron expression into the sets of numbers that cron_next searches.
-- Invariant: pure, so that a schedule can store the result. Sets are stored as bits, as
-- the type describes; a plain weekday is five bits, one for each week of a month.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_parse(cron text)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
as $$
declare
    _names constant text[] := '{second,minute,hour,day-of-month,month,day-of-week,year}'::text[];
    _fields text[] := jobq_private.cron_split(cron);
    _parsed jobq_private.cron;
begin
    select
        bit_or(1::bigint << n.number) filter (where i.field = 1),
        bit_or(1::bigint << n.number) filter (where i.field = 2),
        bit_or(1::bigint << n.number) filter (where i.field = 3),
        bit_or(1::bigint << n.number) filter (where i.field = 5),
        coalesce(bit_or(1::bigint << (n.number - 1)) filter (where i.form = 'day'), 0),
        coalesce(bit_or(1::bigint << (n.number - 1)) filter (where i.form = 'W'), 0),
        coalesce(bit_or(1::bigint << (30 - n.number)) filter (where i.form = 'L'), 0),
        coalesce(bit_or(1::bigint << (30 - n.number)) filter (where i.form = 'LW'), 0),
        coalesce(bit_or(case i.form
            when 'weekday' then 270549121 * (1::bigint << n.number)
            when '#' then 1::bigint << (7 * (right(i.item, 1)::integer - 1) + n.number)
        end), 0),
        coalesce(bit_or(1::bigint << n.number) filter (where i.form = 'weekday L'), 0),
        array_agg(distinct n.number order by n.number) filter (where i.field = 7)
    into
        _parsed.seconds, _parsed.minutes, _parsed.hours, _parsed.months, _parsed.days,
        _parsed.near_days, _parsed.last_days, _parsed.near_last_days, _parsed.weekdays,
        _parsed.last_weekdays, _parsed.years
    from (
        select f.field, u.item, case
            when f.field = 4 and u.item ~ '^[0-9]{1,2}W$' then 'W'
            when f.field = 4 and u.item ~ '^L(-([12]?[0-9]|30))?$' then 'L'
            when f.field = 4 and u.item ~ '^L(-([12]?[0-9]|30))?W$' then 'LW'
            when f.field = 4 then 'day'
            when f.field = 6 and u.item ~ '^[0-9A-Z]+#[1-5]$' then '#'
            when f.field = 6 and u.item ~ '^([0-7]|[A-Z]{3})L$' then 'weekday L'
            when f.field = 6 then 'weekday'
        end as form
        from unnest(_fields) with ordinality as f (list, field)
        cross join unnest(string_to_array(
            case when f.field in (4, 6) and f.list = '?' then '*' else f.list end, ','
        )) as u (item)
        where f.field < 7 or f.list <> '*'
    ) as i
    cross join lateral unnest(case
        when i.form in ('L', 'LW') then array[('0' || translate(i.item, '-LW', ''))::integer]
        else jobq_private.cron_numbers(_names[i.field], case i.form
            when 'W' then rtrim(i.item, 'W')
            when '#' then split_part(i.item, '#', 1)
            when 'weekday L' then rtrim(i.item, 'L')
            else i.item
        end)
    end) as n (number);
    _parsed.is_either_day := _fields[4] !~ '^[*?]' and _fields[6] !~ '^[*?]';
    _parsed.is_interval := _fields[1] like '*%' or _fields[2] like '*%' or _fields[3] like '*%';
    -- one of the first 28 days, in any year: such a day always exists
    if _parsed.years is null and (
        _parsed.is_either_day
        or _fields[4] in ('*', '?')
        or (_fields[6] in ('*', '?') and _parsed.days & 268435455 <> 0)
    ) then
        return _parsed;
    elsif jobq_private.cron_next_local(_parsed, timestamp '1970-01-01') is null then
        perform jobq_private.raise_error('CRON_NEVER_FIRES', format(
            'day-of-month "%s", month "%s", day-of-week "%s" and year "%s" have no'
            ' day in common', _fields[4], _fields[5], _fields[6], _fields[7]
        ));
    end if;
    return _parsed;
end
$$;
