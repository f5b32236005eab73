-- Purpose: Returns every version of a schedule, newest first.
-- Invariant: the versions of a name are one chain, also after it was retired and declared again.
-- Raises: 22004, JQ007.
-- Returns: rows of jobq.schedule.
-- Example: select version, status, cron from jobq_internal.list_schedule_versions('weekly summary');
create or replace function jobq_internal.list_schedule_versions(schedule text)
returns setof jobq.schedule language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select v.*
    from jobq.schedule as v
    where v.name = (
        select s.name from jobq_private.schedule_find(list_schedule_versions.schedule) as s
    )
    order by v.version desc
$$;
grant execute on function jobq_internal.list_schedule_versions
to jobq_worker, jobq_operator, jobq_reader;
