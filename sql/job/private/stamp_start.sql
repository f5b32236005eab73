-- Purpose: set attempt, worker and lease of a job that starts; null if it must not start.
-- Invariant: a job that has expired dies instead. on_claim() checks the limits of a start that is
-- not a claim's, and of deliveries. Raises: JQ011.
create or replace function jobq_private.stamp_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job
language plpgsql
as $$
declare
    _turn jobq_private.claim_turn;
begin
    if job.expires_at <= clock_timestamp() then
        job.state := 'dead';
        job.last_error_code := 'EXPIRED';
        job.last_error := 'it did not start before ' || job.expires_at;
        job.last_error_details := null;
        return job;
    end if;
    if not is_claim or job.delivery_version is not null then
        _turn := jobq_private.on_claim(
            job.queue, job.worker, (not is_claim)::integer, null, null, false, job
        );
        if _turn.found = '{}' then
            return null;
        elsif not is_claim then
            job.slot := _turn.slot;
        end if;
    end if;
    job.attempt := job.attempt + 1;
    job.claimed_at := coalesce(_turn.started_at, clock_timestamp());
    job.worker := coalesce(job.worker, session_user);
    job.lease_expires_at := job.claimed_at + job.lease;
    return job;
end
$$;
