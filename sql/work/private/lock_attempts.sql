-- Purpose: lock the jobs that these attempts hold, and return those that no other transaction
-- holds.
-- Invariant: waits for nobody. Raises: nothing.
create or replace function jobq_private.lock_attempts(job_ids uuid[], attempts integer[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
begin
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(lock_attempts.job_ids)
        and (j.job_id, j.attempt) in (
            select f.* from unnest(lock_attempts.job_ids, lock_attempts.attempts) as f
        )
        and j.lease_expires_at is not null
        for update of j skip locked
    );
end
$$;
