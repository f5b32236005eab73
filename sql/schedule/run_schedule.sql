-- Purpose: Runs a schedule once now, and returns the id of the job.
-- Invariant: the job has the schedule's kind, payload, queue and options, but no slot: the
-- schedule fires as usual, and schedule_status() does not count the job. If a live job has the
-- schedule's dedup key, returns that job, and adds no graph. Works for paused schedules. While
-- grants by queue are enforced, both the caller and the author of the schedule must be allowed to
-- add its jobs. Raises: 22004, 42501, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010. Never:
-- INVALID_ARGUMENT, JOB_NOT_FOUND, BATCH_NOT_FOUND.
-- Returns: the id of the job.
-- Example: select jobq.run_schedule('weekly summary');
create or replace function jobq.run_schedule(schedule text)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _found jobq_private.schedule := jobq_private.schedule_find(run_schedule.schedule);
    _job_id uuid;
    _is_new boolean;
begin
    perform jobq_private.check_problem('SCHEDULE_RETIRED', case
        when _found.status = 'retired'
        then format('schedule %s, version %s', _found.name, _found.version)
    end);
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(
            _found.login, _found.queue, _found.kind, _found.dedup, _found.graph
        );
    end if;
    perform jobq_private.record_audit('run_schedule', _found.name);
    select s.ids[1], s.created[1] into _job_id, _is_new
    from jobq_private.store_jobs(array[jobq_private.schedule_job(
        _found, 1, null, null, _found.dedup
    )]) as s;
    if _found.graph is not null and _is_new then
        perform jobq_private.attach_graph(_job_id, _found.graph, false);
    end if;
    return _job_id;
end
$$;
grant execute on function jobq.run_schedule to jobq_operator;
