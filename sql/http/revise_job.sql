-- Purpose: Changes a recurring job and returns its new version as a JSON document; null
-- for a one-shot job.
-- Invariant: as update_schedule(); returns null for one-shot jobs, which never change.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ009. Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the id of the recurring job's version.
-- Members changes: create_schedule, but not name
-- Returns: the new version as show_schedule() returns it; null for a job that is not recurring.
-- Example: select jobq_http.revise_job(:'schedule', '{"cron": "0 10 * * MON"}');
create or replace function jobq_http.revise_job(job_id uuid, changes jsonb)
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _schedule_id uuid;
begin
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = revise_job.job_id
    ) then
        perform jobq.get_job(revise_job.job_id);
        return null;
    end if;
    _schedule_id := jobq.update_schedule(revise_job.job_id::text, revise_job.changes);
    return jobq_http.show_schedule(_schedule_id::text);
end
$$;
grant execute on function jobq_http.revise_job to jobq_producer, jobq_operator;
