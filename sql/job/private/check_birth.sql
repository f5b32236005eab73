-- Purpose: refuse a row that claims a past it does not have.
-- Invariant: a new job has no previous state, and is queued or blocked;
-- only what redrives brings one back, from dead or cancelled: a trigger, or redrive_jobs().
-- Raises: JQ002.
create or replace function jobq_private.check_birth(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state in ('queued', 'blocked')
        and job.attempt = job.uncounted
        and job.max_attempts > 0
        and num_nonnulls(job.claimed_at, job.lease_expires_at, job.worker) = 0
        and (job.concurrency_key is null or job.lane_id is not null)
        and (
            (job.previous_state is null and job.attempt = 0)
            or (
                job.previous_state in ('dead', 'cancelled')
                and (
                    pg_trigger_depth() > 1 or current_setting('jobq.redrives', true) = 'on'
                )
            )
        )
    then
        return;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: a job is born queued or blocked, in the lane of its key, with no previous state, attempt or lease',
        job.job_id
    ));
end
$$;

revoke all on function jobq_private.check_birth from public;

comment on function jobq_private.check_birth is
'Refuses a job that claims a past.';
