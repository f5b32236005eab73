-- Purpose: the jobs among these running attempts that another transaction holds. Ending them would
-- wait for it.
-- Invariant: waits for nobody. The other jobs are locked for the caller. A stale attempt locks
-- nothing. Raises: nothing.
create or replace function jobq_private.held_jobs(job_ids uuid[], attempts integer[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _free constant uuid[] := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.* from unnest(held_jobs.job_ids, held_jobs.attempts) as f
        )
        and j.lease_expires_at is not null
        for update of j skip locked
    );
begin
    if cardinality(_free) = cardinality(held_jobs.job_ids) then
        return '{}'::uuid[];
    end if;
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.* from unnest(held_jobs.job_ids, held_jobs.attempts) as f
        )
        and j.lease_expires_at is not null
        and j.job_id <> all(_free)
    );
end
$$;
