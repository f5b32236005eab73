-- Deploy jobq:cron to pg
-- Made by sql/snapshot.py from sql/cron/: edit that.
begin;
set local role jobq_owner;

-- Purpose: when the clocks of a zone changed in the 24 hours before an instant.
-- Invariant: pure but for the zone database; the caller knows that there was a change,
-- of 24 hours at most, and halving finds its second. It counts in seconds, because a day
-- of timestamptz is as long as in the session's zone. No SET; all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_change(time_zone text, latest timestamptz)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
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

revoke all on function jobq_private.cron_change from public;

comment on function jobq_private.cron_change is
'Returns the first instant, at most 24 hours before latest, at which a zone has the'
' offset that it has at latest.';

-- Purpose: refuse what is not the IANA name of a zone, or a rule for its changes.
-- Invariant: reads the zone database alone; its EXCEPTION block is why it is not
-- parallel safe.
-- Raises: 22004, 22023, JQ009.

-- PostgreSQL takes more than IANA names: fixed offsets with the sign turned round
-- (UTC+3 is west), any word with a number after it, and abbreviations that hide the
-- summer time of the zone of the same name (CET). None is what a schedule wants.
create or replace function jobq_private.cron_check(
    time_zone text, gap text default 'auto', fold text default 'auto'
)
returns void
language plpgsql
stable
parallel unsafe
security invoker
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
    if time_zone is null or gap is null or fold is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'time_zone, gap or fold');
    elsif gap not in ('auto', 'run', 'skip')
        or fold not in ('auto', 'once', 'both')
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', pg_catalog.format(
            'gap "%s" may be auto, run or skip; fold "%s" may be auto, once or both',
            gap, fold
        ));
    end if;
    begin
        _is_known := _is_known and pg_catalog.now() at time zone time_zone is not null;
    exception when invalid_parameter_value then
        _is_known := false;
    end;
    if not _is_known then
        perform jobq_private.raise_error('INVALID_TIME_ZONE', pg_catalog.format(
            'time zone: "%s" is refused; it may be an IANA name such as UTC,'
            ' Europe/Berlin or America/New_York, no offset and no abbreviation',
            pg_catalog.left(time_zone, 40)
        ));
    end if;
end
$$;

revoke all on function jobq_private.cron_check from public;

comment on function jobq_private.cron_check is
'Refuses a time zone that has no IANA name, and rules that are not known.';

-- Purpose: read the day-of-month field of a cron expression into the parsed form.
-- Invariant: pure; no SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_month(
    parsed jobq_private.cron, list text
)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _number integer;
begin
    parsed.days := 0;
    parsed.near_days := 0;
    parsed.last_days := 0;
    parsed.near_last_days := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '[?LW]' then
            parsed.days := parsed.days
                | (jobq_private.cron_range('day-of-month', _item) >> 1);
        elsif _item = '?' and list = '?' then
            parsed.days := (1::bigint << 31) - 1;
        elsif _item ~ '^[0-9]{1,2}W$' then
            _number := jobq_private.cron_number(
                'day-of-month', pg_catalog.rtrim(_item, 'W')
            );
            parsed.near_days := parsed.near_days | (1::bigint << (_number - 1));
        elsif _item ~ '^L(-([12]?[0-9]|30))?W?$' then
            _number := ('0' || pg_catalog.translate(_item, '-LW', ''))::int;
            if pg_catalog.right(_item, 1) = 'W' then
                parsed.near_last_days := parsed.near_last_days
                    | (1::bigint << (30 - _number));
            else
                parsed.last_days := parsed.last_days | (1::bigint << (30 - _number));
            end if;
        else
            perform jobq_private.cron_refuse('day-of-month', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_month from public;

comment on function jobq_private.cron_day_of_month is
'Returns the parsed expression with its day-of-month field filled in from text.';

-- Purpose: read the day-of-week field of a cron expression into the parsed form.
-- Invariant: pure; a plain weekday is five bits, one in each week of a month, MON#2 is
-- one of the five. No SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_week(
    parsed jobq_private.cron, list text
)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _weekday integer;
    _nth integer;
begin
    parsed.weekdays := 0;
    parsed.last_weekdays := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item ~ '^[0-9A-Z]+#[1-5]$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.split_part(_item, '#', 1)
            ) % 7;
            _nth := pg_catalog.right(_item, 1)::int;
            parsed.weekdays := parsed.weekdays
                | (1::bigint << (7 * (_nth - 1) + _weekday));
        elsif _item ~ '^([0-7]|[A-Z]{3})L$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.rtrim(_item, 'L')
            ) % 7;
            parsed.last_weekdays := parsed.last_weekdays | (1::bigint << _weekday);
        elsif _item = '?' and list = '?' then
            parsed.weekdays := (1::bigint << 35) - 1;
        else
            parsed.weekdays := parsed.weekdays
                | 270549121 * jobq_private.cron_range('day-of-week', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_week from public;

comment on function jobq_private.cron_day_of_week is
'Returns the parsed expression with its day-of-week field filled in from text.';

-- Purpose: turn bits that count from Sunday into bits that count from another weekday.
-- Invariant: pure; no SET and language sql, so that the planner puts the expression in
-- place. 270549121 has a bit at the start of each of five weeks: times a pattern of
-- seven bits, it is that pattern in every week.
-- Raises: nothing.
create or replace function jobq_private.cron_rotate(weeks bigint, weekday integer)
returns bigint
language sql
immutable
parallel safe
security invoker
as $$
    select ((weeks >> weekday) & (270549121 * ((1::bigint << (7 - weekday)) - 1)))
        | ((weeks & (270549121 * ((1::bigint << weekday) - 1))) << (7 - weekday))
$$;

revoke all on function jobq_private.cron_rotate from public;

comment on function jobq_private.cron_rotate is
'Returns five weeks of bits, each turned to begin with weekday; Sunday is 0.';

-- Purpose: the days of one month on which a parsed cron expression fires.
-- Invariant: pure; no SET, since each month searched costs a call, and all names are
-- qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_days(
    cron jobq_private.cron, year integer, month integer
)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _first date := pg_catalog.make_date(year, month, 1);
    _length integer :=
        pg_catalog.make_date(year + month / 12, month % 12 + 1, 1) - _first;
    _weekday integer := pg_catalog.date_part('dow', _first)::int;
    _last bigint := 1::bigint << (_length - 1);
    _month bigint := 2 * _last - 1;
    _days bigint := cron.days | (cron.last_days >> (31 - _length));
    _near bigint := cron.near_days | (cron.near_last_days >> (31 - _length));
    _weekdays bigint := jobq_private.cron_rotate(cron.weekdays, _weekday);
    _sundays bigint;
    _saturdays bigint;
begin
    if _near <> 0 then
        -- Saturday moves to Friday, Sunday to Monday, neither into another month
        _near := _near & _month;
        _sundays := _near & jobq_private.cron_rotate(270549121, _weekday);
        _saturdays := _near & jobq_private.cron_rotate(17315143744, _weekday);
        _days := _days
            | (_near & ~_sundays & ~_saturdays)
            | (_saturdays >> 1) | ((_saturdays & 1) << 2)
            | ((_sundays & ~_last) << 1) | ((_sundays & _last) >> 2);
    end if;
    if cron.last_weekdays <> 0 then
        _weekdays := _weekdays | (
            jobq_private.cron_rotate(cron.last_weekdays, (_weekday + _length) % 7)
            << (_length - 7)
        );
    end if;
    if cron.is_either_day then
        return (_days | _weekdays) & _month;
    end if;
    return _days & _weekdays & _month;
end
$$;

revoke all on function jobq_private.cron_days from public;

comment on function jobq_private.cron_days is
'Returns the days of a month on which an expression fires: bit n is day n + 1.';

-- Purpose: read a field of a cron expression that holds numbers, ranges and steps.
-- Invariant: pure; no SET, since each field costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_field(field text, list text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _bits bigint := 0;
    _item text;
begin
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        _bits := _bits | jobq_private.cron_range(field, _item);
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_field from public;

comment on function jobq_private.cron_field is
'Returns the numbers that a field of a cron expression names, as bits.';

-- Purpose: the first member of a set of numbers kept as bits.
-- Invariant: pure; no SET and language sql, so that the planner puts the expression in
-- place.
-- Raises: nothing.
create or replace function jobq_private.cron_first(bits bigint, start integer)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select (
        pg_catalog.ln(nullif((bits >> start) & -(bits >> start), 0)::double precision)
        / 0.693147180559945309
    )::int + start
$$;

revoke all on function jobq_private.cron_first from public;

comment on function jobq_private.cron_first is
'Returns the lowest bit of bits at or above start, or null; for sets below 2^62.';

-- Purpose: the first time of day, from one on, at which a parsed cron expression fires.
-- Invariant: pure; no SET, for it is hot, and all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_time(cron jobq_private.cron, start time)
returns time
language plpgsql
immutable
parallel safe
security invoker
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

revoke all on function jobq_private.cron_time from public;

comment on function jobq_private.cron_time is
'Returns the first time of day at or after start that an expression names, or null.';

-- Purpose: the first clock reading, from one on, that a cron expression names.
-- Invariant: pure; goes from month to month. Forty years is the longest that a weekday
-- waits for a day of the year (29 February across 2100); the years of a list are all
-- tried. No SET, for it is hot; all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_next_local(
    cron jobq_private.cron, start timestamp
)
returns timestamp
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _time time := jobq_private.cron_time(cron, start::time);
    _year integer := pg_catalog.date_part('year', start)::int;
    _month integer := pg_catalog.date_part('month', start)::int;
    _day integer := pg_catalog.date_part('day', start)::int
        - case when _time is null then 0 else 1 end;
    _last_year integer := case when cron.years is null then _year + 40 else 2199 end;
    _next integer;
begin
    while _year <= _last_year loop
        _next := jobq_private.cron_first(cron.months, _month);
        if _next is null or _year <> all (cron.years) then
            _year := case
                when cron.years is null then _year + 1
                else (select min(y.year) from unnest(cron.years) as y (year)
                    where y.year > _year)
            end;
            _month := 1;
            _day := 0;
            continue;
        elsif _next > _month then
            _month := _next;
            _day := 0;
        end if;
        _day := jobq_private.cron_first(
            jobq_private.cron_days(cron, _year, _month), _day
        );
        if _day is not null then
            return pg_catalog.make_date(_year, _month, _day + 1) + case
                when pg_catalog.make_date(_year, _month, _day + 1) = start::date
                then _time
                else jobq_private.cron_time(cron, time '00:00')
            end;
        end if;
        _month := _month + 1;
        _day := 0;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.cron_next_local from public;

comment on function jobq_private.cron_next_local is
'Returns the first clock reading at or after start that an expression names, or'
' null.';

-- Purpose: the first firing of a parsed cron expression strictly after an instant.
-- Invariant: pure but for the zone database. A clock reading names one instant, none (a
-- gap) or two (a fold). PostgreSQL reads one in a gap by the offset before it, one in a
-- fold by the offset after it: so _at shows another reading in a gap, and is the second
-- of two in a fold. No SET, for it is hot; all names are qualified.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_next(
    cron jobq_private.cron,
    time_zone text,
    after timestamptz,
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
as $$
declare
    _runs boolean := gap = 'run' or (gap = 'auto' and not cron.is_interval);
    _repeats boolean := fold = 'both' or (fold = 'auto' and cron.is_interval);
    _start timestamp := after at time zone time_zone;
    _next timestamp := jobq_private.cron_next_local(
        cron, pg_catalog.date_trunc('second', _start) + interval '1 second'
    );
    _at timestamptz := _start at time zone time_zone;
    _first timestamptz;
    _fold interval;
begin
    if _repeats and _at > after then
        -- the clocks will show this reading again, and then all since the fold began
        _start := jobq_private.cron_change(time_zone, _at) at time zone time_zone;
        _first := jobq_private.cron_next_local(cron, _start) at time zone time_zone;
        if _next >= _start + (_at - after) is not false
            and _first at time zone time_zone < _start + (_at - after)
        then
            return _first;
        end if;
    end if;
    while _next is not null loop
        _at := _next at time zone time_zone;
        if _at at time zone time_zone <> _next then
            _at := jobq_private.cron_change(time_zone, _at);
            exit when _runs;
            _start := _at at time zone time_zone;
        else
            _fold := ((_at - interval '24 hours') at time zone time_zone)
                + interval '24 hours' - _next;
            exit when _fold <= interval '0';
            _first := ((_at at time zone 'UTC') - _fold) at time zone 'UTC';
            exit when _first at time zone time_zone <> _next or (
                _repeats and _first <= after
            );
            if _first > after then
                return _first;
            end if;
            _start := (jobq_private.cron_change(time_zone, _at) at time zone time_zone)
                + _fold;
        end if;
        _next := jobq_private.cron_next_local(cron, _start);
    end loop;
    return case when _next is not null then _at end;
end
$$;

revoke all on function jobq_private.cron_next from public;

comment on function jobq_private.cron_next is
'Returns the first firing strictly after an instant, or null.';

-- Purpose: the last firing of a parsed cron expression in a span of time.
-- Invariant: pure but for the zone database. Halves the span and asks cron_next, so
-- that the cost is the logarithm of the span, not the count of firings in it.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_last(
    cron jobq_private.cron,
    time_zone text,
    after timestamptz,
    until timestamptz,
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
as $$
declare
    -- a firing, and an instant with no firing from it to the end
    _found timestamptz := jobq_private.cron_next(cron, time_zone, after, gap, fold);
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
        _next := jobq_private.cron_next(cron, time_zone, _middle, gap, fold);
        if _next <= until then
            _found := _next;
        else
            _high := _middle;
        end if;
    end loop;
    return _found;
end
$$;

revoke all on function jobq_private.cron_last from public;

comment on function jobq_private.cron_last is
'Returns the last firing after one instant and not after another, or null.';

-- Purpose: read one number or name in a field of a cron expression.
-- Invariant: pure; no SET, since each number costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_number(field text, word text)
returns integer
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _number integer := case
        when word ~ '^[0-9]{1,4}$' then word::int
        when field = 'month' then pg_catalog.array_position(
            '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[], word
        )
        when field = 'day-of-week' then pg_catalog.array_position(
            '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[], word
        ) - 1
    end;
    _fits boolean := case field
        when 'second' then _number <= 59
        when 'minute' then _number <= 59
        when 'hour' then _number <= 23
        when 'day-of-month' then _number between 1 and 31
        when 'month' then _number between 1 and 12
        when 'day-of-week' then _number <= 7
        when 'year' then _number between 1970 and 2199
    end;
begin
    if _fits is not true then
        perform jobq_private.cron_refuse(field, word);
    end if;
    return _number;
end
$$;

revoke all on function jobq_private.cron_number from public;

comment on function jobq_private.cron_number is
'Returns the number that a word means in a field of a cron expression.';

-- Purpose: split a cron expression into its seven fields.
-- Invariant: pure; no SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_split(cron text)
returns text[]
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    -- the C collation, for in Turkish the capital of i is not I
    _text text := pg_catalog.upper(pg_catalog.left(cron, 1001) collate "C");
    _fields text[] := pg_catalog.regexp_split_to_array(
        pg_catalog.btrim(
            case pg_catalog.btrim(_text, E' \t\n\r')
                when '@YEARLY' then '0 0 1 1 *'
                when '@ANNUALLY' then '0 0 1 1 *'
                when '@MONTHLY' then '0 0 1 * *'
                when '@WEEKLY' then '0 0 * * 0'
                when '@DAILY' then '0 0 * * *'
                when '@MIDNIGHT' then '0 0 * * *'
                when '@HOURLY' then '0 * * * *'
                else _text
            end,
            E' \t\n\r'
        ),
        E'[ \t\n\r]+'
    );
    _count integer := pg_catalog.cardinality(_fields);
begin
    if cron is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'cron');
    elsif _count not between 5 and 7 or pg_catalog.length(_text) > 1000 then
        perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
            'expression: "%s" has %s fields and %s characters; it may have 5, 6 or 7'
            ' fields and 1000 characters',
            pg_catalog.left(cron, 40), _count, pg_catalog.length(cron)
        ));
    end if;
    return case _count
        when 5 then '0'::text || _fields || '*'::text
        when 6 then _fields || '*'::text
        else _fields
    end;
end
$$;

revoke all on function jobq_private.cron_split from public;

comment on function jobq_private.cron_split is
'Returns the seven fields of a cron expression, second first and year last.';

-- Purpose: parse a cron expression into the sets of numbers that cron_next searches.
-- Invariant: pure, so that a schedule may keep the result; no SET, and all names are
-- qualified.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_parse(cron text)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _fields text[] := jobq_private.cron_split(cron);
    _parsed jobq_private.cron;
begin
    _parsed.seconds := jobq_private.cron_field('second', _fields[1]);
    _parsed.minutes := jobq_private.cron_field('minute', _fields[2]);
    _parsed.hours := jobq_private.cron_field('hour', _fields[3]);
    _parsed := jobq_private.cron_day_of_month(_parsed, _fields[4]);
    _parsed.months := jobq_private.cron_field('month', _fields[5]);
    _parsed := jobq_private.cron_day_of_week(_parsed, _fields[6]);
    _parsed.years := jobq_private.cron_years(_fields[7]);
    _parsed.is_either_day := _fields[4] !~ '^[*?]' and _fields[6] !~ '^[*?]';
    _parsed.is_interval := _fields[1] like '*%'
        or _fields[2] like '*%'
        or _fields[3] like '*%';
    -- one of the first 28 days, any year: no need to look for a day that exists
    if _parsed.years is null and (
        _parsed.is_either_day
        or _fields[4] in ('*', '?')
        or (_fields[6] in ('*', '?') and _parsed.days & 268435455 <> 0)
    ) then
        return _parsed;
    elsif jobq_private.cron_next_local(_parsed, timestamp '1970-01-01') is null then
        perform jobq_private.raise_error('CRON_NEVER_FIRES', pg_catalog.format(
            'day-of-month "%s", month "%s", day-of-week "%s" and year "%s" have no'
            ' day in common', _fields[4], _fields[5], _fields[6], _fields[7]
        ));
    end if;
    return _parsed;
end
$$;

revoke all on function jobq_private.cron_parse from public;

comment on function jobq_private.cron_parse is
'Returns a cron expression of 5, 6 or 7 fields or an @name, checked and parsed.';

-- Purpose: read *, 5, 1-5, 10/15 or 1-5/2 in a field of a cron expression.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2). A step wider than its field is
-- refused: */90 in the minutes would fire each hour, and nobody who writes it means
-- that. No SET, since each item costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_range(field text, item text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _base integer := case when field in ('day-of-month', 'month') then 1 else 0 end;
    _size integer := case field
        when 'hour' then 24
        when 'day-of-month' then 31
        when 'month' then 12
        when 'day-of-week' then 7
        else 60
    end;
    _span text := pg_catalog.split_part(item, '/', 1);
    _step integer := 1;
    _low integer := _base;
    _high integer := _base + _size - 1;
    _bits bigint := 0;
begin
    if item !~ '^([*]|[0-9A-Z]+(-[0-9A-Z]+)?)(/[0-9]{1,4})?$' then
        perform jobq_private.cron_refuse(field, item);
    elsif _span <> item then
        _step := pg_catalog.split_part(item, '/', 2)::int;
    end if;
    if _step not between 1 and _size then
        perform jobq_private.cron_refuse(field, item);
    end if;
    if _span <> '*' then
        _low := jobq_private.cron_number(field, pg_catalog.split_part(_span, '-', 1));
        if pg_catalog.strpos(_span, '-') > 0 then
            _high := jobq_private.cron_number(
                field, pg_catalog.split_part(_span, '-', 2)
            );
        elsif _span = item then
            _high := _low;
        end if;
        _high := _high + case when _high < _low then _size else 0 end;
    end if;
    for _number in _low.._high by _step loop
        _bits := _bits | (1::bigint << ((_number - _base) % _size + _base));
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_range from public;

comment on function jobq_private.cron_range is
'Returns the numbers that one item of a list in a cron field names, as bits.';

-- Purpose: refuse a part of a cron expression, saying what its field may hold.
-- Invariant: always raises; no SET, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_refuse(field text, part text)
returns void
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _allowed text := case field
        when 'hour' then '0-23'
        when 'day-of-month' then '1-31, ?, L, L-3 (days before the last), 15W, LW'
        when 'month' then '1-12 or JAN-DEC'
        when 'day-of-week' then
            '0-7 (0 and 7 are Sunday) or SUN-SAT, ?, 5L (the last), 5#2 (the second)'
        when 'year' then '1970-2199'
        else '0-59'
    end;
begin
    perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
        '%s: "%s" is refused; the field may hold %s, and *, lists, ranges and steps',
        field, pg_catalog.left(part, 40), _allowed
    ));
end
$$;

revoke all on function jobq_private.cron_refuse from public;

comment on function jobq_private.cron_refuse is
'Refuses a part of a cron expression that its field may not hold.';

-- Purpose: read the year field of a cron expression.
-- Invariant: pure; years are too many for the bits of a bigint, and rare enough to be a
-- list. No SET, since each expression costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_years(list text)
returns int[]
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _bounds int[];
    _years int[] := '{}';
begin
    if list = '*' then
        return null;
    end if;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '^([*]|[0-9]+(-[0-9]+)?)(/0*[1-9][0-9]{0,2})?$' then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        select pg_catalog.array_agg(jobq_private.cron_number('year', w.word))
        into _bounds
        from pg_catalog.regexp_split_to_table(
            pg_catalog.replace(pg_catalog.split_part(_item, '/', 1), '*', '1970-2199'),
            '-'
        ) as w (word);
        if _item ~ '^[0-9]+/' then
            _bounds := _bounds || 2199;
        elsif _bounds[1] > _bounds[2] then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        _years := _years || array(
            select pg_catalog.generate_series(
                _bounds[1],
                coalesce(_bounds[2], _bounds[1]),
                coalesce(nullif(pg_catalog.split_part(_item, '/', 2), ''), '1')::int
            )
        );
    end loop;
    return array(select distinct y.year from unnest(_years) as y (year) order by 1);
end
$$;

revoke all on function jobq_private.cron_years from public;

comment on function jobq_private.cron_years is
'Returns the years that a year field names, ascending, or null for all of them.';

-- Purpose: an instant as ISO 8601 has it, with the offset that the clocks of a zone
-- have.
-- Invariant: pure but for the zone database; by UTC where the server no longer knows
-- the zone, so that such a schedule can still be looked at. Raises: nothing.
create or replace function jobq_private.moment_in(moment timestamptz, time_zone text)
returns text
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _shown timestamp;
    _ahead interval;
begin
    _shown := moment at time zone time_zone;
    _ahead := _shown - (moment at time zone 'UTC');
    return rtrim(rtrim(to_char(_shown, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')
        || case when _ahead < interval '0' then '-' else '+' end
        || left(greatest(_ahead, -_ahead)::text, 5);
exception
    when invalid_parameter_value then
        return jobq_private.moment_in(moment, 'UTC');
end
$$;

revoke all on function jobq_private.moment_in from public;

comment on function jobq_private.moment_in is
'An instant as ISO 8601 has it, with the offset that the clocks of a zone have.';

-- Purpose: refuse a preview that cannot be meant.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.preview_check(ticks integer, after timestamptz)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(ticks, after) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ticks and after');
    elsif ticks not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'ticks must be from 1 to 1000'
        );
    elsif after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be an instant from 1900 to 9998'
        );
    end if;
end
$$;

revoke all on function jobq_private.preview_check from public;

comment on function jobq_private.preview_check is
'Refuses a preview that cannot be meant.';

-- Purpose: the first firing of a cron expression after an instant, in a time zone.
-- Invariant: reads no table and takes no lock.
-- Raises: 22004, 22023, JQ009.
-- Argument after: the answer is strictly later than this instant, from 1900 to 9998.
-- Returns: the firing; null when none is left, which only an expression with a year can
-- come to.
-- Example: select jobq.next_tick('0 9 * * MON', 'Asia/Kolkata');
create or replace function jobq.next_tick(
    cron text,
    time_zone text default 'UTC',
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if next_tick.after is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'after');
    elsif next_tick.after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'after is %s; it may be an instant from 1900 to 9998', next_tick.after
        ));
    end if;
    perform jobq_private.cron_check(next_tick.time_zone, next_tick.gap, next_tick.fold);
    return jobq_private.cron_next(
        jobq_private.cron_parse(next_tick.cron),
        next_tick.time_zone,
        next_tick.after,
        next_tick.gap,
        next_tick.fold
    );
end
$$;

revoke all on function jobq.next_tick from public;

grant execute on function jobq.next_tick
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.next_tick is
'Returns the first firing of a cron expression strictly after an instant, by the clocks'
' of a time zone; null when none is left.';

-- Purpose: the next firings of a cron expression, with what the clocks of its zone
-- show.
-- Invariant: reads no table. Raises: 22004, 22023, JQ009.
-- Argument after: the first one is strictly later than this instant, from 1900 to 9998.
-- Example: select * from jobq.preview_cron('30 2 * * *', 'America/New_York', 3);
create or replace function jobq.preview_cron(
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
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _parsed jobq_private.cron;
begin
    perform jobq_private.preview_check(ticks, after);
    perform jobq_private.cron_check(time_zone, gap, fold);
    _parsed := jobq_private.cron_parse(cron);
    slot_at := after;
    for _tick in 1 .. ticks loop
        slot_at := jobq_private.cron_next(_parsed, time_zone, slot_at, gap, fold);
        exit when slot_at is null;
        local_time := slot_at at time zone time_zone;
        return next;
    end loop;
end
$$;

revoke all on function jobq.preview_cron from public;
grant execute on function jobq.preview_cron
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.preview_cron is
'Returns the next firings of a cron expression, with what the clocks of its zone show.';

commit;
