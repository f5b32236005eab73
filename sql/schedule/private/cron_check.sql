-- Purpose: refuse invalid time zones and invalid rules for clock changes.
-- Invariant: reads only the zone database. PostgreSQL also accepts fixed offsets with the
-- opposite sign (UTC+3 is west), any word with a number after it, and abbreviations that hide the
-- summer time of the zone of the same name (CET); schedules do not. Raises: 22004, 22023, JQ009.
create or replace function jobq_private.cron_check(time_zone text, gap text, fold text)
returns void language plpgsql stable as $$
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
