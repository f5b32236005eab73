-- Purpose: delete the steps and waits of jobs whose records are not kept. Signals,
-- which have no index by job, stay for the retention of events.
-- Invariant: the caller has locked or deleted the jobs.
create or replace function jobq_private.forget_steps(job_ids uuid[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
begin
    delete from jobq_private.step as s where s.job_id = any(forget_steps.job_ids);
    delete from jobq_private.waiter as w where w.job_id = any(forget_steps.job_ids);
end
$$;
