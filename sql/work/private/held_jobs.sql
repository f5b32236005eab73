-- Purpose: which of these running jobs another transaction holds, so that a call which changes
-- them would wait for it.
-- Invariant: the others are locked for the caller, by the primary key; waits for nobody.
-- Raises: nothing.
create or replace function jobq_private.held_jobs(job_ids uuid[])
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
        where j.job_id = any(held_jobs.job_ids) and j.lease_expires_at is not null
        for update skip locked
    );
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and j.lease_expires_at is not null
        and j.job_id <> all(_free)
    );
end
$$;

revoke all on function jobq_private.held_jobs from public;

comment on function jobq_private.held_jobs is
'Which of these jobs another transaction holds; the others are locked.';
