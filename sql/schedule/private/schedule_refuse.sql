-- Purpose: refuse an invalid definition of a schedule.
-- Invariant: reads only the zone database; shared properties are checked as for a job.
-- Raises: 22004, 22023, JQ009.
create or replace function jobq_private.schedule_refuse(given jobq_private.schedule)
returns void language plpgsql stable as $$
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
