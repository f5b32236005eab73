-- Purpose: Returns a schedule by name, or a version by id.
-- Invariant: a name means the newest version. Raises: 22004, JQ007.
-- Returns: a row of jobq.schedule.
-- Example: select version, status, next_run_at from jobq_internal.get_schedule('weekly summary');
create or replace function jobq_internal.get_schedule(schedule text)
returns jobq.schedule language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select v.*
    from jobq.schedule as v
    where v.schedule_id = (
        select s.schedule_id from jobq_private.schedule_find(get_schedule.schedule) as s
    )
$$;
grant execute on function jobq_internal.get_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
