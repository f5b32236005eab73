-- Purpose: cancel the jobs that a cancelled job has called, but for detached ones; returns
-- whether none is left.
-- Invariant: waits for no lock; at most 1,000 jobs in a call. Does nothing if the caller was
-- redriven.
create or replace function jobq_private.cancel_children(job_id uuid)
returns boolean language plpgsql as $$
declare
    _called constant uuid[] := array(
        select e.parent
        from jobq_private.edge as e
        where e.child = cancel_children.job_id
        and e.after_failure = 'call'
        and not exists (
            select from jobq_private.job as j where j.job_id = cancel_children.job_id
        )
    );
    _locked constant uuid[] := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_called) and j.cancel_requested_at is null
        order by j.job_id
        limit 1000
        for update skip locked
    );
begin
    perform jobq_private.cancel_jobs(_locked, 'the job that called it was cancelled');
    return not exists (
        select from jobq_private.job as j
        where j.job_id = any(_called) and j.cancel_requested_at is null
    );
end
$$;
