-- Deploy jobq:schedule to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: the slots of a schedule in a past span that have no job.
-- Invariant: excludes slots that tick() has yet to take. A job of any version of the
-- schedule counts, live or archived. Raises: 22023.
create or replace function jobq_private.backfill_slots(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer
)
returns timestamptz[]
language plpgsql
stable
as $$
declare
    _until constant timestamptz := least(
        backfill_slots.until, schedule.ends_at, schedule.next_run_at
    );
    _anchor constant timestamptz := coalesce(
        schedule.starts_at, schedule.next_run_at, schedule.last_tick_at, backfill_slots.since
    );
    _slot timestamptz := backfill_slots.since - interval '1 us';
    _slots timestamptz[] := '{}'::timestamptz[];
begin
    loop
        _slot := jobq_private.schedule_next(schedule.parsed, schedule.every, _anchor, _slot);
        exit when not coalesce(_slot < _until, false);
        perform jobq_private.check_argument(case
            when cardinality(_slots) = max_slots
            then format('the span has more than %s slots (max_slots)', max_slots)
        end);
        _slots := _slots || _slot;
    end loop;
    return array(
        select u.slot_at
        from unnest(_slots) as u (slot_at)
        where u.slot_at not in (
            select j.slot_at
            from jobq_private.schedule as s
            join jobq.job as j on j.schedule_id = s.schedule_id
            where s.name = schedule.name and j.slot_at = any(_slots)
        )
        order by u.slot_at
    );
end
$$;

-- Purpose: the numbers of a list in a field of a cron expression, as bits.
-- Invariant: pure. Raises: JQ009.
create or replace function jobq_private.cron_bits(field integer, list text)
returns bigint
language sql
immutable
as $$
    select bit_or(1::bigint << n.number)
    from string_to_table(cron_bits.list, ',') as i (item)
    cross join lateral unnest(jobq_private.cron_numbers(cron_bits.field, i.item)) as n (number)
$$;

-- Purpose: the time at which the clocks of a zone changed within the 24 hours before an
-- instant.
-- Invariant: depends only on the zone database. The caller has checked that there was a
-- change of at most 24 hours; bisection finds its second. Computes in seconds, because
-- the length of a day of timestamptz depends on the session's zone. No SET; all names
-- are qualified.
create or replace function jobq_private.cron_change(time_zone text, latest timestamptz)
returns timestamptz
language plpgsql
stable
as $$
declare
    _high double precision := pg_catalog.floor(pg_catalog.date_part('epoch', latest));
    _low double precision := _high - 86400;
    _middle double precision;
    _at timestamptz;
    _offset interval := (latest at time zone time_zone) - (latest at time zone 'UTC');
begin
    while _high - _low > 1 loop
        _middle := pg_catalog.floor((_low + _high) / 2);
        _at := pg_catalog.to_timestamp(_middle);
        if (_at at time zone time_zone) - (_at at time zone 'UTC') = _offset then
            _high := _middle;
        else
            _low := _middle;
        end if;
    end loop;
    return pg_catalog.to_timestamp(_high);
end
$$;

-- Purpose: refuse invalid time zones and invalid rules for clock changes.
-- Invariant: reads only the zone database. PostgreSQL also accepts fixed offsets with the
-- opposite sign (UTC+3 is west), any word with a number after it, and abbreviations that
-- hide the summer time of the zone of the same name (CET); schedules do not.
-- Raises: 22004, 22023, JQ009.
create or replace function jobq_private.cron_check(time_zone text, gap text, fold text)
returns void
language plpgsql
stable
as $$
declare
    _is_known boolean := time_zone !~* '^(posix|right)/' and (
        time_zone ~* '^(UTC|GMT[+-]?0?|Etc/GMT([+-]?[0-9]|[+-]1[0-2]|-1[34]))$'
        or time_zone ~ '^[A-Za-z_]+(/[A-Za-z_-]+)+$'
        or (time_zone ~ '^[A-Za-z-]+$' and not exists (
            select from pg_catalog.pg_timezone_abbrevs as a
            where a.abbrev = pg_catalog.upper(time_zone)
        ))
    );
begin
    perform jobq_private.check_given('time_zone, gap or fold', num_nulls(time_zone, gap, fold));
    perform jobq_private.check_argument(case
        when gap not in ('auto', 'run', 'skip') or fold not in ('auto', 'once', 'both')
        then pg_catalog.format(
            'gap "%s" must be auto, run or skip; fold "%s" must be auto, once or both', gap, fold
        )
    end);
    begin
        _is_known := _is_known and pg_catalog.now() at time zone time_zone is not null;
    exception when invalid_parameter_value then
        _is_known := false;
    end;
    perform jobq_private.check_problem('INVALID_TIME_ZONE', case
        when not _is_known then pg_catalog.format(
            'time zone: "%s" is not valid; use an IANA name such as UTC,'
            ' Europe/Berlin or America/New_York, not an offset or abbreviation',
            pg_catalog.left(time_zone, 40)
        )
    end);
end
$$;

-- Purpose: the first member of a set of numbers stored as bits.
-- Invariant: pure; no SET and language sql, so that the planner inlines it.
create or replace function jobq_private.cron_first(bits bigint, start integer)
returns integer
language sql
immutable
as $$
    select (
        pg_catalog.ln(nullif((bits >> start) & -(bits >> start), 0)::double precision)
        / 0.693147180559945309
    )::int + start
$$;

-- Purpose: whether the day fields of a parsed cron expression name a day.
-- Invariant: pure; ignores the fields of month and year. length is that of the month.
create or replace function jobq_private.cron_has_day(
    cron jobq_private.cron, date date, length integer
)
returns boolean
language plpgsql
immutable
as $$
declare
    _day constant integer := pg_catalog.date_part('day', date);
    _weekday constant integer := pg_catalog.date_part('dow', date);
    _near constant bigint := cron.near_days | (cron.near_last_days >> (31 - length));
    _names_day boolean := ((cron.days | (cron.last_days >> (31 - length))) >> _day) & 1 = 1;
    _names_weekday constant boolean :=
        (cron.weekdays >> ((_day - 1) / 7 * 7 + _weekday)) & 1 = 1
        or (length - _day < 7 and (cron.last_weekdays >> _weekday) & 1 = 1);
    _from integer := _day;
    _to integer := _day;
begin
    if _near <> 0 and _weekday between 1 and 5 then
        -- The days that move to this one: Saturday to Friday and Sunday to Monday, or,
        -- at the end of a month, to the weekday on its other side.
        if _weekday = 1 then
            _from := case when _day = 3 then 1 else greatest(_day - 1, 1) end;
        elsif _weekday = 5 then
            _to := case when _day = length - 2 then length else least(_day + 1, length) end;
        end if;
        _names_day := _names_day
            or (_near >> _from) & ((1::bigint << (_to - _from + 1)) - 1) <> 0;
    end if;
    if cron.is_either_day then
        return _names_day or _names_weekday;
    end if;
    return _names_day and _names_weekday;
end
$$;

-- Purpose: the last time in a span at which a parsed cron expression fires.
-- Invariant: depends only on the zone database. Bisects the span with cron_next, so the
-- cost is logarithmic in the span and does not depend on the number of slots.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_last(
    cron jobq_private.cron, after timestamptz, until timestamptz
)
returns timestamptz
language plpgsql
stable
as $$
declare
    -- _fires is a slot; from _none to the end there is none
    _found timestamptz := jobq_private.cron_next(cron, after);
    _high timestamptz := until;
    _middle timestamptz;
    _next timestamptz;
begin
    if _found > until then
        return null;
    end if;
    while _found < _high loop
        _middle := pg_catalog.to_timestamp(pg_catalog.floor((
            pg_catalog.date_part('epoch', _found) + pg_catalog.date_part('epoch', _high)
        ) / 2));
        _next := jobq_private.cron_next(cron, _middle);
        if _next <= until then
            _found := _next;
        else
            _high := _middle;
        end if;
    end loop;
    return _found;
end
$$;

-- Purpose: the first time strictly after an instant at which a parsed cron expression
-- fires.
-- Invariant: depends only on the zone database. A local time names one instant, none (a
-- gap) or two (a fold). PostgreSQL converts one in a gap by the offset before it, one
-- in a fold by the offset after it: so _at shows another local time in a gap, and is
-- the second instant in a fold. No SET, because it is called often; all names are
-- qualified.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_next(
    cron jobq_private.cron, after timestamptz
)
returns timestamptz
language plpgsql
stable
as $$
declare
    _zone constant text := cron.time_zone;
    _start timestamp := after at time zone _zone;
    _next timestamp := jobq_private.cron_next_local(
        cron, pg_catalog.date_trunc('second', _start) + interval '1 second'
    );
    _at timestamptz := _start at time zone _zone;
    _first timestamptz;
    _fold interval;
begin
    if cron.repeats_in_fold and _at > after then
        -- the clocks will show this local time again, and all times since the fold
        -- began
        _start := jobq_private.cron_change(_zone, _at) at time zone _zone;
        _first := jobq_private.cron_next_local(cron, _start) at time zone _zone;
        if _next >= _start + (_at - after) is not false
            and _first at time zone _zone < _start + (_at - after)
        then
            return _first;
        end if;
    end if;
    while _next is not null loop
        _at := _next at time zone _zone;
        if _at at time zone _zone <> _next then
            _at := jobq_private.cron_change(_zone, _at);
            exit when cron.runs_in_gap;
            _start := _at at time zone _zone;
        else
            _fold := ((_at - interval '24 hours') at time zone _zone)
                + interval '24 hours' - _next;
            exit when _fold <= interval '0';
            _first := ((_at at time zone 'UTC') - _fold) at time zone 'UTC';
            exit when _first at time zone _zone <> _next or (
                cron.repeats_in_fold and _first <= after
            );
            if _first > after then
                return _first;
            end if;
            _start := (jobq_private.cron_change(_zone, _at) at time zone _zone)
                + _fold;
        end if;
        _next := jobq_private.cron_next_local(cron, _start);
    end loop;
    return case when _next is not null then _at end;
end
$$;

-- Purpose: the first local time at or after a given one that matches a cron expression;
-- null if there is none.
-- Invariant: pure; tries each day of the months in the expression. A weekday on a day
-- of the year can be up to forty years away (29 February across 2100); all years of a
-- list are tried. No SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_next_local(
    cron jobq_private.cron, start timestamp
)
returns timestamp
language plpgsql
immutable
as $$
declare
    _date date := start;
    _from time := start;
    _time time;
    _year integer := pg_catalog.date_part('year', _date);
    _next_month date;
    _last_year constant integer := case when cron.years is null then _year + 40 else 2199 end;
begin
    while _year <= _last_year loop
        -- of a timestamp: that of a date would depend on the session's time zone
        _next_month := pg_catalog.date_trunc('month', _date::timestamp) + interval '1 month';
        if _year <> all(cron.years) then
            _date := pg_catalog.make_date(_year + 1, 1, 1);
        elsif (cron.months >> pg_catalog.date_part('month', _date)::integer) & 1 = 0 then
            _date := _next_month;
        else
            while _date < _next_month loop
                if jobq_private.cron_has_day(
                    cron, _date, pg_catalog.date_part('day', _next_month - 1)::integer
                ) then
                    _time := jobq_private.cron_time(cron, _from);
                    if _time is not null then
                        return _date + _time;
                    end if;
                end if;
                _date := _date + 1;
                _from := '00:00';
            end loop;
        end if;
        _from := '00:00';
        _year := pg_catalog.date_part('year', _date);
    end loop;
    return null;
end
$$;

-- Purpose: the numbers that an item of a field of a cron expression stands for: *, 5,
-- 1-5, 10/15 or 1-5/2.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2), except one of years. Refuses a
-- step wider than its field: */90 in the minutes would fire every hour, which nobody
-- intends. Raises: JQ009.
create or replace function jobq_private.cron_numbers(field integer, item text)
returns integer[]
language plpgsql
immutable
as $$
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

-- Purpose: parse a cron expression into the sets of numbers that cron_next searches.
-- Invariant: pure, so that a schedule can store the result, which the type describes.
-- With auto, expressions whose second, minute or hour begins with * count the time that
-- passes: they skip gaps and repeat in folds. Others count by the clock.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_parse(
    cron text, time_zone text, gap text default 'auto', fold text default 'auto'
)
returns jobq_private.cron
language plpgsql
immutable
as $$
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

-- Purpose: the first time of day, at or after a given one, at which a parsed cron
-- expression fires.
-- Invariant: pure; no SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_time(cron jobq_private.cron, start time)
returns time
language plpgsql
immutable
as $$
declare
    _hour integer := pg_catalog.date_part('hour', start)::int;
    _minute integer := pg_catalog.date_part('minute', start)::int;
    _second integer;
begin
    if cron.hours >> _hour & 1 = 1 then
        if cron.minutes >> _minute & 1 = 1 then
            _second := jobq_private.cron_first(
                cron.seconds, pg_catalog.date_part('second', start)::int
            );
        end if;
        if _second is null then
            _minute := jobq_private.cron_first(cron.minutes, _minute + 1);
        end if;
    else
        _minute := null;
    end if;
    if _minute is null then
        _hour := jobq_private.cron_first(cron.hours, _hour + 1);
        _minute := jobq_private.cron_first(cron.minutes, 0);
    end if;
    return pg_catalog.make_time(
        _hour, _minute, coalesce(_second, jobq_private.cron_first(cron.seconds, 0))
    );
end
$$;

-- Purpose: the schedules that can fire, each with its time: the next slot, or the retry
-- after a failure.
-- Invariant: reads only, through schedule_due_idx, also when rows are locked.
create or replace view jobq_private.due_schedule as
select s.schedule_id, greatest(s.next_run_at, s.retry_at) as due_at
from jobq_private.schedule as s
where s.status = 'active' and s.next_run_at is not null;

comment on view jobq_private.due_schedule is 'the schedules that can fire, each with its time: the next slot, or the retry after a failure.';

-- Purpose: a definition of a schedule with these members replaced; null restores the default.
-- Invariant: accepts only what create_schedule() has as arguments, and no name if it has one
-- already. Raises: 22004, 22023.
create or replace function jobq_private.read_schedule(
    base jobq_private.schedule, name text, members jsonb
)
returns jobq_private.schedule
language plpgsql
stable
as $$
declare
    _known constant text[] := array[
        'name', 'kind', 'cron', 'every', 'time_zone', 'payload', 'queue', 'from_completion', 'gap',
        'fold', 'missed', 'catch_up', 'dedup', 'dedup_key', 'jitter', 'starts_at', 'ends_at',
        'priority', 'max_attempts', 'timeout', 'metadata', 'concurrency_key', 'graph'
    ];
    _free constant text[] := array_remove(_known, case when base.name is not null then 'name' end);
begin
    perform jobq_private.check_given(read_schedule.name, num_nulls(members));
    perform jobq_private.check_argument(case
        when jsonb_typeof(members) <> 'object' or members - _free <> '{}'
        then format('%s must be an object with members among %s', read_schedule.name, _free)
    end);
    return jsonb_populate_record(base, members);
end
$$;

-- Purpose: take the due slots, and move each schedule to its next slot.
-- Invariant: SKIP LOCKED, so no caller waits for another. next_run_at is compared and
-- set in the transaction that stores the jobs, so each slot fires once. One statement
-- locks and the next one reads, so its snapshot includes what others have committed.
-- Earliest first; schedules with missed slots share the rest of max_schedules. Pauses a
-- schedule whose zone no longer exists; a failed one waits for its retry. With only_id,
-- takes no other schedule.
create or replace function jobq_private.schedule_advance(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns jobq_private.new_job[]
language plpgsql
set jit = off
set enable_seqscan = off
as $$
declare
    _due uuid[];
    _jobs jobq_private.new_job[];
begin
    _due := array(
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= schedule_advance.until
        and (schedule_advance.only_id is null or s.schedule_id = schedule_advance.only_id)
        order by s.due_at
        limit schedule_advance.max_schedules
        for no key update skip locked
    );
    if _due = '{}' then
        return null;
    end if;
    with planned as materialized (
        select s.schedule_id, s.next_run_at as due_at, p.slots, p.next_run_at, p.problem
        from jobq_private.schedule as s
        cross join lateral jobq_private.schedule_slots(
            s.parsed, s.every, case when s.from_completion then 'all' else s.missed end, s.catch_up,
            s.ends_at, s.next_run_at, schedule_advance.until,
            case when s.from_completion then 1
                else schedule_advance.max_schedules / cardinality(_due)
            end
        ) as p
        where s.schedule_id = any (_due)
    ),
    advanced as (
        update jobq_private.schedule as s
        set
            next_run_at = case
                when not s.from_completion or p.slots = '{}' then p.next_run_at
            end,
            last_tick_at = coalesce(p.slots[cardinality(p.slots)], s.last_tick_at),
            status = case when p.problem is null then 'active' else 'paused' end,
            paused_at = case when p.problem is not null then now() end,
            pause_reason = p.problem,
            retry_at = null,
            failure = null
        from planned as p
        where s.schedule_id = p.schedule_id and s.next_run_at = p.due_at
        returning s.*, p.slots
    )
    select array_agg(row(
        f.ordinal, f.kind, f.payload, f.queue, f.slot_at + random() * f.jitter,
        f.priority, f.max_attempts, f.timeout,
        format('job_%s_%s', f.schedule_id, floor(extract(epoch from f.slot_at) * 1000)),
        case when f.dedup <> 'enqueue' then f.dedup_key end, f.dedup, f.metadata,
        f.schedule_id, f.slot_at, f.concurrency_key, null, null, null, null, null,
        null, null, null, null, null, null, null, null, null, null, null
    )::jobq_private.new_job) into _jobs
    from (
        select a.*, u.slot_at,
            row_number() over (order by u.slot_at, a.schedule_id)::integer as ordinal
        from advanced as a
        cross join lateral unnest(a.slots) as u (slot_at)
    ) as f;
    return _jobs;
end
$$;

-- Purpose: check the definition of a schedule, and set its defaults.
-- Invariant: an accepted definition can fire later without another check; equivalent
-- definitions become equal. Only the payload schema of the kind can change afterwards,
-- and applies to new definitions.
-- Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_check(given jobq_private.schedule)
returns jobq_private.schedule
language plpgsql
stable
set standard_conforming_strings = on
as $$
declare
    _set jobq_private.schedule := given;
begin
    _set.payload := coalesce(given.payload, '{}');
    _set.metadata := coalesce(given.metadata, '{}');
    _set.from_completion := coalesce(given.from_completion, false);
    _set.time_zone := coalesce(given.time_zone, 'UTC');
    _set.gap := coalesce(given.gap, 'auto');
    _set.fold := coalesce(given.fold, 'auto');
    _set.jitter := coalesce(given.jitter, '0');
    _set.ends_at := nullif(given.ends_at, 'infinity');
    _set.missed := coalesce(
        given.missed, case when given.every is null then 'all' else 'latest' end
    );
    _set.catch_up := coalesce(
        given.catch_up, case when _set.missed = 'none' then interval '1 min' end
    );
    _set.dedup := coalesce(given.dedup, case
        when given.dedup_key is not null
        then (
            select case when s.dedup in ('debounce', 'throttle') then 'skip' else s.dedup end
            from jobq_private.settings_for(given.kind, given.queue) as s
        )
        when given.every is null then 'enqueue'
        else 'skip'
    end);
    _set.dedup_key := case
        when _set.dedup <> 'enqueue' then coalesce(given.dedup_key, given.name)
    end;
    perform jobq_private.schedule_refuse(_set);

    _set.every := make_interval(
        secs => extract(epoch from given.every)::double precision
    );
    _set.parsed := null;
    if given.cron is not null then
        _set.cron := regexp_replace(btrim(given.cron), '\s+', ' ', 'g');
        _set.parsed := jobq_private.cron_parse(
            given.cron, _set.time_zone, _set.gap, _set.fold
        );
    end if;
    perform jobq_private.check_new_jobs(array[jsonb_populate_record(
        null::jobq_private.new_job,
        to_jsonb(_set) || jsonb_build_object(
            'ordinal', 1, 'schedule_id', jobq_private.id_floor('epoch')
        )
    )]);
    if given.graph is not null then
        perform jobq_private.check_graph(given.graph, given.kind);
    end if;
    return _set;
end
$$;

-- Purpose: make a definition the active one of its name: if it differs, create a new
-- version that replaces the old one. With keeps, an active version stays, even if it
-- differs.
-- Invariant: writers of a name lock the row of its newest version, as tick() does, so a
-- slot belongs to one version. Unique keys decide between callers that see no version,
-- or one that is retired meanwhile; they then read again with a new snapshot. Locks are
-- "no key update", because a caller may hold an older version that foreign keys refer
-- to. A new version with the same timing continues at the next slot, otherwise at its
-- own first slot that has not fired. A pause stays. Refuses a name of schedules that
-- the caller may not see.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_declare(
    given jobq_private.schedule, keeps boolean,
    out schedule_id uuid, out created boolean
)
language plpgsql
as $$
#variable_conflict use_column
declare
    _not_declared constant text[] := '{
        schedule_id, version, previous_version_id, replaced_by_id, status, parsed, next_run_at,
        awaited_job_id, last_tick_at, paused_at, pause_reason, retry_at, failure, login, region,
        created_at, retired_at
    }'::text[];
    _new jobq_private.schedule := jobq_private.schedule_check(given);
    _old jobq_private.schedule;
begin
    for _try in 1 .. 20 loop
        select s.* into _old
        from jobq_private.schedule as s
        where s.name = _new.name
        order by s.version desc
        limit 1
        for no key update;
        if _old.status <> 'retired' and (
            schedule_declare.keeps
            or to_jsonb(_old) - _not_declared = to_jsonb(_new) - _not_declared
        ) then
            schedule_id := _old.schedule_id;
            created := false;
            return;
        end if;

        _new := jobq_private.schedule_succeed(_new, _old);
        update jobq_private.schedule as s
        set
            status = 'retired', retired_at = now(), next_run_at = null,
            awaited_job_id = null
        where s.schedule_id = _old.schedule_id and s.status <> 'retired';
        insert into jobq_private.schedule select _new.* on conflict do nothing;
        created := found;
        exit when created;
    end loop;
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when not created then 'schedule ' || _new.name
    end);
    update jobq_private.schedule as s
    set replaced_by_id = _new.schedule_id
    where s.schedule_id = _old.schedule_id;
    schedule_id := _new.schedule_id;
    -- A sleeping worker does not know when the new version is due.
    perform jobq_private.notify('jobq', '*');
    perform jobq_private.record_audit(
        'put_schedule', _new.name, 'version ' || _new.version
    );
end
$$;

-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version, which is the active one if there is one;
-- no name looks like an id. Raises: 22004, JQ007.
create or replace function jobq_private.schedule_find(schedule text)
returns jobq_private.schedule
language plpgsql
stable
as $$
declare
    _found jobq_private.schedule;
begin
    perform jobq_private.check_given('schedule', num_nulls(schedule_find.schedule));
    if schedule_find.schedule ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select s.* into _found
        from jobq_private.schedule as s
        where s.schedule_id = schedule_find.schedule::uuid;
    else
        select s.* into _found
        from jobq_private.schedule as s
        where s.name = schedule_find.schedule
        order by s.version desc
        limit 1;
    end if;
    perform jobq_private.check_problem('SCHEDULE_NOT_FOUND', case
        when not found then 'schedule ' || left(schedule_find.schedule, 128)
    end);
    return _found;
end
$$;

-- Purpose: the first slot of a schedule strictly after an instant, within its bounds.
-- Invariant: an interval counts from starts_at, else from its previous next slot, else
-- from the instant. Raises: 22023 for a zone that the server no longer has.
create or replace function jobq_private.schedule_first(
    schedule jobq_private.schedule, after timestamptz
)
returns timestamptz
language plpgsql
stable
as $$
declare
    _after constant timestamptz := greatest(
        schedule_first.after, schedule.starts_at - interval '1 us'
    );
    _first constant timestamptz := jobq_private.schedule_next(
        schedule.parsed, schedule.every,
        coalesce(schedule.starts_at, schedule.next_run_at, _after), _after
    );
begin
    return case when _first < coalesce(schedule.ends_at, 'infinity') then _first end;
end
$$;

-- Purpose: set the next slot of from_completion schedules whose last job has ended.
-- Invariant: one statement finds a job in either the live table or the archive; a job
-- in neither ended long ago. SKIP LOCKED.
create or replace function jobq_private.schedule_follow(max_schedules integer)
returns void
language plpgsql
set jit = off
set enable_seqscan = off
as $$
begin
    with ended as materialized (
        select s.schedule_id, s.awaited_job_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and not exists (
            select from jobq_private.job as j where j.job_id = s.awaited_job_id
        )
        limit schedule_follow.max_schedules
        for no key update skip locked
    ),
    timed as materialized (
        select e.schedule_id, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = e.awaited_job_id
            and a.finished_at >= jobq_private.id_time(e.awaited_job_id)
        ), now()) as finished_at
        from ended as e
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when t.finished_at + s.every < coalesce(s.ends_at, 'infinity')
            then greatest(t.finished_at, s.last_tick_at) + s.every
        end
    from timed as t
    where s.schedule_id = t.schedule_id and s.awaited_job_id is not null;
end
$$;

-- Purpose: lock a schedule by name or id, to change it.
-- Invariant: a name returns the newest version, even if another transaction creates one
-- during the wait: it holds the row of the previous version.
-- Raises: 22004, JQ002, JQ007.
create or replace function jobq_private.schedule_hold(
    schedule text, may_be_retired boolean default false
)
returns jobq_private.schedule
language plpgsql
as $$
declare
    _found jobq_private.schedule;
    _held jobq_private.schedule;
begin
    loop
        _found := jobq_private.schedule_find(schedule_hold.schedule);
        exit when _found.schedule_id = _held.schedule_id;
        select s.* into _held
        from jobq_private.schedule as s
        where s.schedule_id = _found.schedule_id
        for no key update;
    end loop;
    perform jobq_private.check_problem('SCHEDULE_RETIRED', case
        when _held.status = 'retired' and not may_be_retired
        then format('schedule %s, version %s', _held.name, _held.version)
    end);
    return _held;
end
$$;

-- Purpose: the first slot of a schedule strictly after an instant. An interval counts
-- from anchor, which is any of its slots.
-- Invariant: depends only on the zone database. Intervals are stored in seconds, so
-- their slots depend on no zone; numeric arithmetic, so they do not drift. Raises:
-- 22023 for a zone that the server no longer has.
create or replace function jobq_private.schedule_next(
    cron jobq_private.cron, every interval, anchor timestamptz, after timestamptz
)
returns timestamptz
language plpgsql
stable
as $$
begin
    if every is null then
        return jobq_private.cron_next(cron, after);
    elsif anchor = after then
        return anchor + every;
    end if;
    return anchor + every * (floor(
        extract(epoch from after - anchor) / extract(epoch from every)
    ) + 1)::double precision;
end
$$;

-- Purpose: refuse an invalid definition of a schedule.
-- Invariant: reads only the zone database; shared properties are checked as for a job.
-- Raises: 22004, 22023, JQ009.
create or replace function jobq_private.schedule_refuse(given jobq_private.schedule)
returns void
language plpgsql
stable
as $$
begin
    perform jobq_private.check_given('name', num_nulls(given.name));
    perform jobq_private.check_argument(case
        when length(given.name) not between 1 and 128
            or given.name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then 'name must have 1 to 128 characters, and not be a UUID'
        when num_nonnulls(given.cron, given.every) <> 1
        then 'pass either cron or every'
        when given.from_completion and given.every is null
        then 'from_completion requires every'
        when given.every not between '1 s' and '3660 days'
            or extract(month from given.every) <> 0
            or extract(year from given.every) <> 0
        then 'every must be from 1 s to 3660 days, without months; for those use cron'
        when given.missed not in ('all', 'latest', 'none')
        then 'missed must be all, latest or none'
        when given.catch_up not between '1 s' and '3660 days'
        then 'catch_up must be from 1 s to 3660 days'
        when given.dedup not in ('skip', 'enqueue', 'replace')
        then 'dedup must be skip, enqueue or replace'
        when given.jitter not between '0' and '1 day'
        then 'jitter must be from 0 to 1 day'
        when given.starts_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
            or given.ends_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
        then 'starts_at and ends_at must be from 1900 to 9998'
        when given.starts_at >= given.ends_at
        then 'starts_at must be before ends_at'
    end);
    perform jobq_private.cron_check(given.time_zone, given.gap, given.fold);
end
$$;

-- Purpose: the slots of a due schedule that fire now, and the next slot after them.
-- Invariant: at most max_slots. The next slot is counted from the slot that fires, not
-- from now, so a schedule with many missed slots catches up call by call. Policy none
-- is latest with a short catch-up window. Takes columns and not the row, to avoid
-- reading the payload. Returns, rather than raises, that the server no longer has a
-- zone, so that one schedule does not stop the others.
create or replace function jobq_private.schedule_slots(
    cron jobq_private.cron,
    every interval,
    missed text,
    catch_up interval,
    ends_at timestamptz,
    due_at timestamptz,
    until timestamptz,
    max_slots integer,
    out slots timestamptz[],
    out next_run_at timestamptz,
    out problem text
)
language plpgsql
stable
as $$
declare
    _end constant timestamptz := coalesce(schedule_slots.ends_at, 'infinity');
    _latest constant timestamptz := least(until, _end - interval '1 us');
    _oldest constant timestamptz := coalesce(until - catch_up, '-infinity');
begin
    slots := '{}';
    next_run_at := due_at;
    -- The latest slot; the cost does not grow with the number of missed slots.
    if missed <> 'all' and every is null then
        next_run_at := coalesce(
            jobq_private.cron_last(cron, due_at, _latest), due_at
        );
    elsif missed <> 'all' then
        next_run_at := due_at + every * floor(
            extract(epoch from _latest - due_at) / extract(epoch from every)
        )::double precision;
    end if;
    if next_run_at < _oldest then
        next_run_at := jobq_private.schedule_next(
            cron, every, next_run_at, case
                when missed = 'all' then _oldest - interval '1 us' else until
            end
        );
    end if;
    while next_run_at <= until and next_run_at < _end
        and cardinality(slots) < max_slots
    loop
        slots := slots || next_run_at;
        next_run_at := jobq_private.schedule_next(cron, every, next_run_at, next_run_at);
    end loop;
    next_run_at := case when next_run_at < _end then next_run_at end;
exception
    when invalid_parameter_value then
        slots := '{}';
        next_run_at := due_at;
        problem := sqlerrm;
end
$$;

-- Purpose: store the jobs of the slots that were taken, by the overlap rule of each
-- schedule, with their graphs.
-- Invariant: does not repeat the checks of the declaration: a refused slot would be
-- lost or stop the others. While grants by queue are enforced, the author of the
-- schedule must still be allowed to add its jobs. Raises: 42501, JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
as $$
#variable_conflict use_column
begin
    if jobs is null then
        return;
    elsif row_security_active('jobq_private.job') then
        perform jobq_private.check_author(s.login, s.queue, s.kind, s.dedup, s.graph)
        from jobq_private.schedule as s
        where s.schedule_id in (select j.schedule_id from unnest(jobs) as j);
    end if;
    for schedule_id, slot_at, job_id, created in
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.store_jobs(jobs, is_checked => true) as a
        cross join lateral unnest(a.ids, a.created) with ordinality as f (job_id, created, n)
        join unnest(jobs) as j on j.ordinal = f.n
        order by j.slot_at, j.schedule_id
    loop
        if created then
            perform jobq_private.attach_graph(job_id, s.graph, true)
            from jobq_private.schedule as s
            where s.schedule_id = schedule_store.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;

-- Purpose: a new version of a schedule and its first slot, given the previous version,
-- if any.
-- Invariant: no slot is lost between the versions, and none fires in both: last_tick_at
-- is kept, and a slot that is overdue stays due if the new calendar has it too.
create or replace function jobq_private.schedule_succeed(
    new jobq_private.schedule, old jobq_private.schedule
)
returns jobq_private.schedule
language plpgsql
as $$
declare
    _next jobq_private.schedule := new;
    _timing constant text[] :=
        '{cron,every,from_completion,time_zone,gap,fold,starts_at,ends_at}'::text[];
    _is_alive constant boolean := coalesce(old.status <> 'retired', false);
    _is_same constant boolean := not exists (
        select from unnest(_timing) as t (name)
        where to_jsonb(new) -> t.name is distinct from to_jsonb(old) -> t.name
    );
begin
    _next.schedule_id := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _next.version := coalesce(old.version, 0) + 1;
    _next.previous_version_id := old.schedule_id;
    _next.replaced_by_id := null;
    _next.region := 'default';
    _next.login := session_user;
    _next.retry_at := null;
    _next.failure := null;
    _next.created_at := now();
    _next.retired_at := null;
    _next.status := case when _is_alive then old.status else 'active' end;
    _next.paused_at := case when _is_alive then old.paused_at end;
    _next.pause_reason := case when _is_alive then old.pause_reason end;
    _next.last_tick_at := old.last_tick_at;
    _next.next_run_at := case when _is_alive then old.next_run_at end;
    _next.awaited_job_id := case
        when _is_alive and new.from_completion then old.awaited_job_id
    end;
    if not (_is_alive and _is_same) and _next.awaited_job_id is null then
        _next.next_run_at := jobq_private.schedule_first(_next, case
            when old.status = 'active' and old.next_run_at <= clock_timestamp()
            then old.next_run_at - interval '1 us'
            else clock_timestamp()
        end);
    end if;
    return _next;
end
$$;

-- Purpose: when the next slot of any schedule is due, for maintain_in(); null without
-- one.
-- Invariant: reads one index entry.
create or replace function jobq_private.tick_due()
returns timestamptz
language sql
stable
as $$
    select min(s.due_at) from jobq_private.due_schedule as s
$$;

-- Purpose: tick() as a task of maintain().
-- Invariant: see tick(). Returns how many. Raises: nothing of its own.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.tick_schedules(max_rows integer)
returns bigint
language sql
as $$
    select count(*) from jobq_internal.tick(max_rows)
$$;

-- Purpose: Creates the jobs of past slots of a schedule that did not fire, each once.
-- Invariant: each slot once, even beside tick() and other calls, because the schedule's
-- row is locked. A slot is known only by its job, so a slot older than the retention
-- counts as not fired. The overlap rule does not apply: each slot has its job, due at
-- once, in the order of the slots. All or none; refused if the span has too many slots.
-- Works for paused schedules, and for spans before the start.
-- Raises: 22004, 22023, 42501, JQ002, JQ004, JQ007.
-- Argument since: slots at or after this instant.
-- Argument until: slots before this instant, which is not later than now.
-- Argument max_slots: maximum number of slots, 1 to 10000; a span with more is refused.
-- Column job_id: the created job; null in a dry run.
-- Example: select * from jobq.backfill_schedule('weekly summary', now() - interval '30 days', now(), dry_run => true);
create or replace function jobq.backfill_schedule(
    schedule text,
    since timestamptz,
    until timestamptz,
    max_slots integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns table (slot_at timestamptz, job_id uuid)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_hold(schedule);
    _slots timestamptz[];
begin
    perform jobq_private.check_given(
        'since, until, max_slots and dry_run', num_nulls(since, until, max_slots, dry_run)
    );
    perform jobq_private.check_argument(case
        when not since < until then 'since must be before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'the span must be between 1900 and now'
        when max_slots not between 1 and 10000 then 'max_slots must be from 1 to 10000'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when _found.from_completion then 'a schedule with from_completion has no past slots'
    end);
    _slots := jobq_private.backfill_slots(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots
    );
    if backfill_schedule.dry_run then
        return query select u, null::uuid from unnest(_slots) as u;
        return;
    end if;
    return query select f.slot_at, f.job_id
    from jobq_private.schedule_store(array(
        select row(
            u.n, _found.kind, _found.payload, _found.queue, now(), _found.priority,
            _found.max_attempts, _found.timeout,
            format('job_%s_%s', _found.schedule_id, floor(extract(epoch from u.at) * 1000)),
            null, 'enqueue', _found.metadata, _found.schedule_id, u.at,
            _found.concurrency_key, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null
        )::jobq_private.new_job
        from unnest(_slots) with ordinality as u (at, n)
    )) as f;
    perform jobq_private.record_audit(
        'backfill_schedule', _found.name,
        concat_ws(': ', cardinality(_slots) || ' slots', backfill_schedule.reason)
    );
end
$$;

grant execute on function jobq.backfill_schedule to jobq_operator;

comment on function jobq.backfill_schedule is 'Creates the jobs of past slots of a schedule that did not fire, each once.';

-- Purpose: Creates a recurring job under a name, by cron or every, and returns the id
-- of its version: the existing one for the same definition, else a new one.
-- Invariant: the same definition changes nothing; a different one creates a new version
-- and retires the old one. So every deployment can declare its schedules, even
-- concurrently. A null argument means the default, not the previous value.
-- Raises: 22004, 22023, 42501, JQ001, JQ004, JQ005, JQ006, JQ009.
-- Argument name: the schedule's name, 1 to 128 characters, not a UUID.
-- Argument queue: the queue of its jobs; null means the kind's, else default.
-- Argument missed: which missed slots fire: all, latest or none; null means all for cron,
-- latest for every.
-- Argument dedup: what to do while a job with the same key is live: enqueue, skip or replace;
-- null means enqueue for cron, skip for every.
-- Argument dedup_key: the key of its jobs; null means the name.
-- Argument graph: a graph as for enqueue_graph(), run after each of its jobs; jobs without
-- after wait for that job; null means none.
-- Returns: the id of the current version.
-- Example: select jobq.create_schedule('daily report', 'report', '0 7 * * *', time_zone => 'Europe/Berlin');
create or replace function jobq.create_schedule(
    name text,
    kind text,
    cron text default null,
    every interval default null,
    time_zone text default 'UTC',
    payload jsonb default '{}',
    queue text default null,
    from_completion boolean default false,
    gap text default 'auto',
    fold text default 'auto',
    missed text default null,
    catch_up interval default null,
    dedup text default null,
    dedup_key text default null,
    jitter interval default '0',
    starts_at timestamptz default null,
    ends_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    metadata jsonb default null,
    concurrency_key text default null,
    graph jsonb default null
)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _given jobq_private.schedule;
begin
    _given.name := create_schedule.name;
    _given.kind := create_schedule.kind;
    _given.cron := create_schedule.cron;
    _given.every := create_schedule.every;
    _given.time_zone := create_schedule.time_zone;
    _given.payload := create_schedule.payload;
    _given.queue := create_schedule.queue;
    _given.from_completion := create_schedule.from_completion;
    _given.gap := create_schedule.gap;
    _given.fold := create_schedule.fold;
    _given.missed := create_schedule.missed;
    _given.catch_up := create_schedule.catch_up;
    _given.dedup := create_schedule.dedup;
    _given.dedup_key := create_schedule.dedup_key;
    _given.jitter := create_schedule.jitter;
    _given.starts_at := create_schedule.starts_at;
    _given.ends_at := create_schedule.ends_at;
    _given.priority := create_schedule.priority;
    _given.max_attempts := create_schedule.max_attempts;
    _given.timeout := create_schedule.timeout;
    _given.metadata := create_schedule.metadata;
    _given.concurrency_key := create_schedule.concurrency_key;
    _given.graph := create_schedule.graph;
    return (jobq_private.schedule_declare(_given, false)).schedule_id;
end
$$;

grant execute on function jobq.create_schedule
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.create_schedule is 'Creates a recurring job under a name, by cron or every, and returns the id of its version: the existing one for the same definition, else a new one.';

-- Purpose: All versions of all schedules, with their next and last slots.
-- Invariant: reads only; functions change schedules. Retired versions are the history.
-- Column schedule_id: the id of this version.
-- Column graph: the jobs that run after each of its jobs; null without a graph.
create or replace view jobq.schedule as
select
    s.schedule_id, s.name, s.version, s.status, s.kind, s.queue, s.cron, s.every,
    s.from_completion, s.time_zone, s.gap, s.fold, s.missed, s.catch_up, s.dedup,
    s.dedup_key, s.concurrency_key, s.jitter, s.starts_at, s.ends_at, s.next_run_at, s.last_tick_at,
    s.payload, s.metadata, s.graph, s.priority, s.max_attempts, s.timeout, s.previous_version_id,
    s.replaced_by_id, s.awaited_job_id, s.paused_at, s.pause_reason, s.region,
    s.created_at, s.retired_at
from jobq_private.schedule as s;

grant select on jobq.schedule to jobq_reader;

comment on view jobq.schedule is 'All versions of all schedules, with their next and last slots.';

-- Purpose: Returns a schedule by name, or a version by id.
-- Invariant: a name means the newest version. Raises: 22004, JQ007.
-- Returns: a row of jobq.schedule.
-- Example: select version, status, next_run_at from jobq_internal.get_schedule('weekly summary');
create or replace function jobq_internal.get_schedule(schedule text)
returns jobq.schedule
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select v.*
    from jobq.schedule as v
    where v.schedule_id = (
        select s.schedule_id from jobq_private.schedule_find(get_schedule.schedule) as s
    )
$$;

grant execute on function jobq_internal.get_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.get_schedule is 'Returns a schedule by name, or a version by id.';

-- Purpose: Returns every version of a schedule, newest first.
-- Invariant: the versions of a name are one chain, also after it was retired and
-- declared again.
-- Raises: 22004, JQ007.
-- Returns: rows of jobq.schedule.
-- Example: select version, status, cron from jobq_internal.list_schedule_versions('weekly summary');
create or replace function jobq_internal.list_schedule_versions(schedule text)
returns setof jobq.schedule
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select v.*
    from jobq.schedule as v
    where v.name = (
        select s.name from jobq_private.schedule_find(list_schedule_versions.schedule) as s
    )
    order by v.version desc
$$;

grant execute on function jobq_internal.list_schedule_versions
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_schedule_versions is 'Returns every version of a schedule, newest first.';

-- Purpose: Returns a page of schedules, newest first: current ones, or those with a
-- status.
-- Invariant: without a status, returns active and paused versions. before is the last
-- id of the previous page; ids are ordered by time. Raises: 22004, 22023.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Returns: rows of jobq.schedule.
-- Example: select name, next_run_at from jobq_internal.list_schedules();
create or replace function jobq_internal.list_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50
)
returns setof jobq.schedule
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_count('max_schedules', list_schedules.max_schedules, 1, 1000);
    perform jobq_private.check_argument(case
        when list_schedules.status not in ('active', 'paused', 'retired')
        then 'status must be active, paused or retired'
    end);
    return query
    select v.*
    from jobq.schedule as v
    where (
        v.status = list_schedules.status
        or (list_schedules.status is null and v.status <> 'retired')
    )
    and (list_schedules.kind is null or v.kind = list_schedules.kind)
    and (list_schedules.queue is null or v.queue = list_schedules.queue)
    and (list_schedules.before is null or v.schedule_id < list_schedules.before)
    order by v.schedule_id desc
    limit list_schedules.max_schedules;
end
$$;

grant execute on function jobq_internal.list_schedules
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_schedules is 'Returns a page of schedules, newest first: current ones, or those with a status.';

-- Purpose: Returns the next time of a cron expression after an instant, in a time zone;
-- null if there is none.
-- Invariant: reads no table and takes no lock.
-- Raises: 22004, 22023, JQ009.
-- Argument after: the result is strictly later than this time, from 1900 to 9998.
-- Returns: the next time; null if there is none, which requires an expression with a year.
-- Example: select jobq.next_tick('0 9 * * MON', 'Asia/Kolkata');
create or replace function jobq.next_tick(
    cron text,
    time_zone text default 'UTC',
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.slot_at
    from jobq_internal.preview_cron(
        next_tick.cron, next_tick.time_zone, 1, next_tick.after, next_tick.gap, next_tick.fold
    ) as p
$$;

grant execute on function jobq.next_tick
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.next_tick is 'Returns the next time of a cron expression after an instant, in a time zone; null if there is none.';

-- Purpose: Pauses a schedule until it is resumed.
-- Invariant: its existing jobs continue; pausing a paused schedule changes nothing.
-- Raises: 22004, JQ002, JQ007.
-- Example: select jobq.pause_schedule('weekly summary', 'nobody reads it in August');
create or replace function jobq.pause_schedule(schedule text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(pause_schedule.schedule);
begin
    update jobq_private.schedule as s
    set
        status = 'paused', paused_at = now(),
        pause_reason = left(pause_schedule.reason, 512)
    where s.schedule_id = _held.schedule_id and s.status = 'active';
    if found then
        perform jobq_private.record_audit(
            'pause_schedule', _held.name, left(pause_schedule.reason, 512)
        );
    end if;
end
$$;

grant execute on function jobq.pause_schedule to jobq_operator;

comment on function jobq.pause_schedule is 'Pauses a schedule until it is resumed.';

-- Purpose: Returns the next times of a cron expression, also in local time.
-- Invariant: reads no table. Raises: 22004, 22023, JQ009.
-- Argument after: all times are strictly later than this one, from 1900 to 9998.
-- Example: select * from jobq_internal.preview_cron('30 2 * * *', 'America/New_York', 3);
create or replace function jobq_internal.preview_cron(
    cron text,
    time_zone text default 'UTC',
    ticks integer default 5,
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns table (slot_at timestamptz, local_time timestamp)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _parsed jobq_private.cron;
begin
    perform jobq_private.check_count('ticks', ticks, 1, 1000);
    perform jobq_private.check_given('after', num_nulls(after));
    perform jobq_private.check_argument(case
        when after not between '1900-01-01 UTC' and '9999-01-01 UTC'
        then 'after must be from 1900 to 9998'
    end);
    perform jobq_private.cron_check(time_zone, gap, fold);
    _parsed := jobq_private.cron_parse(cron, time_zone, gap, fold);
    slot_at := after;
    for _tick in 1 .. ticks loop
        slot_at := jobq_private.cron_next(_parsed, slot_at);
        exit when slot_at is null;
        local_time := slot_at at time zone time_zone;
        return next;
    end loop;
end
$$;

grant execute on function jobq_internal.preview_cron
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.preview_cron is 'Returns the next times of a cron expression, also in local time.';

-- Purpose: Returns the next times of a schedule, also in local time.
-- Invariant: for from_completion, only the next slot is known; for a paused schedule,
-- the slots as if it were resumed now; for a retired one, none. Jitter is not included.
-- Raises: 22004, 22023, JQ007.
-- Example: select * from jobq_internal.preview_schedule('weekly summary', 3);
create or replace function jobq_internal.preview_schedule(schedule text, ticks integer default 5)
returns table (slot_at timestamptz, local_time timestamp)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        preview_schedule.schedule
    );
begin
    perform jobq_private.check_count('ticks', ticks, 1, 1000);
    slot_at := case _found.status
        when 'active' then _found.next_run_at
        when 'paused' then jobq_private.schedule_first(_found, now())
    end;
    for _tick in 1 .. ticks loop
        exit when not coalesce(slot_at < coalesce(_found.ends_at, 'infinity'), false);
        local_time := slot_at at time zone _found.time_zone;
        return next;
        exit when _found.from_completion;
        slot_at := jobq_private.schedule_next(_found.parsed, _found.every, slot_at, slot_at);
    end loop;
end
$$;

grant execute on function jobq_internal.preview_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.preview_schedule is 'Returns the next times of a schedule, also in local time.';

-- Purpose: Resumes a paused schedule from its next slot.
-- Invariant: slots during the pause do not fire; an interval keeps its phase. Resuming
-- a schedule that is not paused changes nothing.
-- Raises: 22004, 22023, JQ002, JQ007, JQ009.
-- Example: select jobq.resume_schedule('weekly summary');
create or replace function jobq.resume_schedule(schedule text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(resume_schedule.schedule);
begin
    if _held.status = 'active' then
        return;
    end if;
    perform jobq_private.cron_check(_held.time_zone, _held.gap, _held.fold);
    update jobq_private.schedule as s
    set
        status = 'active', paused_at = null, pause_reason = null,
        next_run_at = case
            when s.awaited_job_id is null
            then jobq_private.schedule_first(_held, clock_timestamp())
        end
    where s.schedule_id = _held.schedule_id;
    perform jobq_private.notify('jobq', '*');
    perform jobq_private.record_audit('resume_schedule', _held.name);
end
$$;

grant execute on function jobq.resume_schedule to jobq_operator;

comment on function jobq.resume_schedule is 'Resumes a paused schedule from its next slot.';

-- Purpose: Ends a schedule permanently. Existing jobs continue.
-- Invariant: it never fires again; its jobs continue, and its history stays. Its name
-- can be declared again. Retiring it twice changes nothing.
-- Raises: 22004, JQ007. Never: SCHEDULE_RETIRED.
-- Example: select jobq.retire_schedule('weekly summary');
create or replace function jobq.retire_schedule(schedule text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(
        retire_schedule.schedule, may_be_retired => true
    );
begin
    update jobq_private.schedule as s
    set
        status = 'retired', retired_at = now(), next_run_at = null,
        awaited_job_id = null
    where s.schedule_id = _held.schedule_id and s.status <> 'retired';
    if found then
        perform jobq_private.record_audit('retire_schedule', _held.name);
    end if;
end
$$;

grant execute on function jobq.retire_schedule to jobq_producer, jobq_operator;

comment on function jobq.retire_schedule is 'Ends a schedule permanently. Existing jobs continue.';

-- Purpose: Runs a schedule once now, and returns the id of the job.
-- Invariant: the job has the schedule's kind, payload, queue and options, but no slot:
-- the schedule fires as usual, and schedule_status() does not count the job. If a live
-- job has the schedule's dedup key, returns that job. Works for paused schedules. While
-- grants by queue are enforced, both the caller and the author of the schedule must be
-- allowed to add its jobs.
-- Raises: 22004, 42501, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010. Never: INVALID_ARGUMENT,
-- JOB_NOT_FOUND, BATCH_NOT_FOUND.
-- Returns: the id of the job.
-- Example: select jobq.run_schedule('weekly summary');
create or replace function jobq.run_schedule(schedule text)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule := jobq_private.schedule_find(run_schedule.schedule);
    _job_id uuid;
begin
    perform jobq_private.check_problem('SCHEDULE_RETIRED', case
        when _found.status = 'retired'
        then format('schedule %s, version %s', _found.name, _found.version)
    end);
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(
            _found.login, _found.queue, _found.kind,
            case when _found.dedup_key is null then 'enqueue' else _found.dedup end, _found.graph
        );
    end if;
    perform jobq_private.record_audit('run_schedule', _found.name);
    _job_id := jobq.enqueue(
        _found.kind, _found.payload, _found.queue, null, _found.priority,
        _found.max_attempts, _found.timeout, null, _found.dedup_key,
        case when _found.dedup_key is not null then _found.dedup end, _found.metadata,
        concurrency_key => _found.concurrency_key
    );
    if _found.graph is not null and not exists (
        select from jobq_private.node as n where n.job_id = _job_id
    ) then
        perform jobq_private.attach_graph(_job_id, _found.graph, false);
    end if;
    return _job_id;
end
$$;

grant execute on function jobq.run_schedule to jobq_operator;

comment on function jobq.run_schedule is 'Runs a schedule once now, and returns the id of the job.';

-- Purpose: Creates the jobs of due slots, each once even with concurrent callers.
-- Invariant: each slot once, however many callers run concurrently, and none waits for
-- another. A schedule that cannot fire does not stop the others: it keeps its slot, is
-- retried a minute later, and health() reports the reason. The caller must repeat 40001
-- and 40P01.
-- Inside: schedule_advance() takes the slots.
-- Raises: 22004, 22023.
-- Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
-- Argument max_schedules: maximum number of schedules and of jobs, 1 to 10000.
-- Column job_id: the job of the slot.
-- Column created: false if the overlap rule kept a live job instead.
-- Example: select * from jobq_internal.tick();
create or replace function jobq_internal.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp();
    _max integer := tick.max_schedules;
    _ids uuid[] := '{}'::uuid[];
    _n integer := 0;
    _jobs jobq_private.new_job[];
    _detail text;
begin
    perform jobq_private.check_count('max_schedules', tick.max_schedules, 1, 10000);
    perform jobq_private.schedule_follow(tick.max_schedules);
    -- First all schedules at once (_ids[0] is null). If that fails, one by one, so that each
    -- failure is undone by itself. After two seconds the rest is left to the next call.
    loop
        begin
            _jobs := jobq_private.schedule_advance(_max, _until, _ids[_n]);
            return query
            with fired as materialized (
                select f.* from jobq_private.schedule_store(_jobs) as f
            ),
            awaiting as (
                update jobq_private.schedule as s
                set awaited_job_id = f.job_id
                from fired as f
                where s.schedule_id = f.schedule_id and s.from_completion
            )
            select f.* from fired as f;
        exception
            when transaction_rollback then
                raise;
            when others then
                get stacked diagnostics _detail = pg_exception_detail;
                update jobq_private.schedule as s
                set
                    retry_at = clock_timestamp() + interval '1 min',
                    failure = left(concat_ws(': ', sqlerrm, nullif(_detail, '')), 512)
                where s.schedule_id = (
                    select f.schedule_id
                    from jobq_private.schedule as f
                    where f.schedule_id = _ids[_n] and f.status = 'active'
                    for no key update skip locked
                );
                if _n = 0 then
                    _ids := array(
                        select s.schedule_id
                        from jobq_private.due_schedule as s
                        where s.due_at <= _until
                        order by s.due_at
                        limit tick.max_schedules
                    );
                    _max := greatest(tick.max_schedules / greatest(cardinality(_ids), 1), 1);
                end if;
        end;
        _n := _n + 1;
        exit when _n > cardinality(_ids) or clock_timestamp() > _until + interval '2 s';
    end loop;
end
$$;

grant execute on function jobq_internal.tick to jobq_worker, jobq_operator;

comment on function jobq_internal.tick is 'Creates the jobs of due slots, each once even with concurrent callers.';

-- Purpose: Changes the given members of a schedule, and returns the id of the new
-- version.
-- Invariant: changes is a JSON object with parameters of create_schedule(); omitted
-- members keep their values, and null restores the default. Passing cron removes every,
-- and the other way round. An update without changes creates no version.
-- Raises: 22004, 22023, 42501, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Members changes: create_schedule, but not name
-- Returns: the id of the new version, or of the old one if nothing changes.
-- Example: select jobq.update_schedule('weekly summary', '{"cron": "0 10 * * MON"}');
create or replace function jobq.update_schedule(schedule text, changes jsonb)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _set jobq_private.schedule := jobq_private.schedule_hold(update_schedule.schedule);
begin
    if update_schedule.changes ->> 'cron' is not null then
        _set.every := null;
        _set.from_completion := null;
    elsif update_schedule.changes ->> 'every' is not null then
        _set.cron := null;
    end if;
    return (jobq_private.schedule_declare(
        jobq_private.read_schedule(_set, 'changes', update_schedule.changes), false
    )).schedule_id;
end
$$;

grant execute on function jobq.update_schedule to jobq_producer, jobq_operator;

comment on function jobq.update_schedule is 'Changes the given members of a schedule, and returns the id of the new version.';

-- Purpose: refuse to delete the declaration of a queue or kind while a schedule or its
-- graph uses it.
-- Invariant: the trigger's argument names the column, which schedule has too. Raises:
-- JQ008.
create or replace function jobq_private.refuse_scheduled()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _name constant text := to_jsonb(old) ->> tg_argv[0];
begin
    perform jobq_private.check_problem('HAS_DEPENDENTS', (
        select format('schedules of %s %s', tg_argv[0], _name)
        from jobq_private.schedule as s
        where s.status <> 'retired'
        and (
            _name = case tg_argv[0] when 'queue' then s.queue else s.kind end
            or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object(tg_argv[0], _name)]
            )
        )
        limit 1
    ));
    return old;
end
$$;

create or replace trigger queue_scheduled
before delete on jobq_private.queue
for each row execute function jobq_private.refuse_scheduled('queue');

create or replace trigger kind_scheduled
before delete on jobq_private.kind
for each row execute function jobq_private.refuse_scheduled('kind');

-- Purpose: refuse to change the definition in a version of a schedule; a new version
-- changes it.
-- Invariant: fires only for an UPDATE that names one of these columns, so a tick does
-- not pay for it. Raises: JQ002.
create or replace function jobq_private.refuse_schedule_change()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('SCHEDULE_IMMUTABLE', format(
        'schedule %s, version %s', old.name, old.version
    ));
    return null;
end
$$;

create or replace trigger schedule_version
before update of
schedule_id, name, version, previous_version_id, kind, queue, payload, metadata,
priority, max_attempts, timeout, cron, parsed, every, from_completion, time_zone, gap,
fold, missed, catch_up, dedup, dedup_key, concurrency_key, graph, jitter, starts_at, ends_at, created_at
on jobq_private.schedule
for each row execute function jobq_private.refuse_schedule_change();

-- A schedule only moves forward: its last slot grows, and a retired version stays retired.
-- With the check that next_run_at is after last_tick_at, no writer can make a slot fire
-- again. A retired row gets the id of its successor once.
create or replace trigger schedule_progress
before update on jobq_private.schedule
for each row
when (
    new.last_tick_at is distinct from greatest(new.last_tick_at, old.last_tick_at)
    or (
        old.status = 'retired'
        and (new.status <> 'retired' or old.replaced_by_id is not null)
    )
)
execute function jobq_private.refuse_schedule_change();

commit;
