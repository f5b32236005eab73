-- Purpose: set attempt, worker and lease of a job that starts; null if it must not start.
-- Invariant: a job that has expired dies instead. on_start() checks the limits of a start that is
-- not a claim's, and of deliveries. Raises: JQ011.
create or replace function jobq_private.stamp_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job language plpgsql as $$
begin
    if job.expires_at <= clock_timestamp() then
        update jobq_private.job as j
        set
            state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
            last_error = 'it did not start before ' || j.expires_at
        where j.job_id = job.job_id;
        return null;
    end if;
    if not is_claim or job.delivery_version is not null then
        job := jobq_private.on_start(job, is_claim);
        if job.job_id is null then
            return null;
        end if;
    end if;
    job.attempt := job.attempt + 1;
    job.claimed_at := coalesce(job.claimed_at, clock_timestamp());
    job.worker := coalesce(job.worker, session_user);
    job.lease_expires_at := job.claimed_at + job.lease;
    return job;
end
$$;
