-- Purpose: of which of these attempts that run another transaction holds the job, so that a call
-- which ends them would wait for it.
-- Invariant: the others are locked for the caller, by the primary key; waits for nobody. A stale
-- attempt locks nothing, so that it keeps the job from nobody.
-- Raises: nothing.
create or replace function jobq_private.held_jobs(job_ids uuid[], attempts integer[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _free uuid[];
begin
    _free := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.job_id, f.attempt
            from unnest(held_jobs.job_ids, held_jobs.attempts) as f (job_id, attempt)
        )
        and j.lease_expires_at is not null
        for update of j skip locked
    );
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.job_id, f.attempt
            from unnest(held_jobs.job_ids, held_jobs.attempts) as f (job_id, attempt)
        )
        and j.lease_expires_at is not null
        and j.job_id <> all(_free)
    );
end
$$;

revoke all on function jobq_private.held_jobs from public;

comment on function jobq_private.held_jobs is
'The jobs of these attempts that another transaction holds; the others are locked.';
