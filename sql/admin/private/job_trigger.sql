-- Purpose: how a job was scheduled, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.
-- Invariant: reads only when a job of a paused endpoint was due. A DELAYED job has this
-- in its metadata, since run_at changes when it is released or retried.
create or replace function jobq_private.job_trigger(job jobq.job)
returns text language plpgsql stable as $$
declare
    _due timestamptz := job.run_at;
begin
    if job.run_at = jobq_private.parked_until() then
        _due := coalesce(
            (select p.run_at from jobq_private.parked_job as p where p.job_id = job.job_id), _due
        );
    end if;
    return case
        when job.schedule_id is not null then 'CRON'
        when job.metadata ->> 'trigger' = 'DELAYED' then 'DELAYED'
        -- Before its first attempt ends, run_at is the requested time.
        when _due > job.created_at and job.last_error is null
            and (job.attempt = 0 or job.attempt = 1 and job.state <> 'queued') then 'DELAYED'
        else 'IMMEDIATE'
    end;
end
$$;
