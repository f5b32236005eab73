-- Purpose: Cancels a job like cancel(), or retires a recurring one, and returns which.
-- Invariant: existing jobs of a recurring job continue. Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Returns: cancelled, cancel_requested, already_finished or, of a recurring job, retired.
-- Example: select jobq_http.stop_job(:'waiting');
create or replace function jobq_http.stop_job(job_id uuid, reason text default null)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _status text;
begin
    select s.status into _status
    from jobq_private.schedule as s
    where s.schedule_id = stop_job.job_id;
    if not found then
        return jobq.cancel(stop_job.job_id, stop_job.reason);
    elsif _status = 'retired' then
        return 'already_finished';
    end if;
    perform jobq.retire_schedule(stop_job.job_id::text);
    return 'retired';
end
$$;
grant execute on function jobq_http.stop_job to jobq_producer, jobq_operator;
