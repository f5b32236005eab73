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
