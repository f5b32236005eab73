-- Purpose: what made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.
-- Invariant: reads nothing; a job that was asked for as DELAYED says so in its metadata,
-- since run_at changes when it retries. Raises: nothing.
create or replace function jobq_private.job_trigger(job jobq.job)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when job.schedule_id is not null then 'CRON'
        when job.metadata ->> 'trigger' = 'DELAYED' then 'DELAYED'
        when job.run_at > job.created_at and job.last_error is null then 'DELAYED'
        else 'IMMEDIATE'
    end;
end
$$;

revoke all on function jobq_private.job_trigger from public;

comment on function jobq_private.job_trigger is
'What made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.';
