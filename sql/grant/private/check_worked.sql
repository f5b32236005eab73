-- Purpose: refuse to change or delete jobs of queues without a work grant, also in a dry run.
-- Invariant: reads only; reads no job while queue grants are not enforced. Raises: 42501.
create or replace function jobq_private.check_worked(job_ids uuid[], queue text default null)
returns void language plpgsql stable parallel safe as $$
declare
    _worked constant text[] := jobq_private.worked_queues();
begin
    if _worked is null then
        return;
    end if;
    perform jobq_private.check_problem('QUEUE_DENIED', (
        select 'queue ' || min(q.queue)
        from (
            select check_worked.queue
            union all
            select j.queue from jobq_private.job as j where j.job_id = any(check_worked.job_ids)
            union all
            select a.queue from jobq_private.job_archive as a where a.job_id = any(check_worked.job_ids)
        ) as q
        where q.queue <> all(_worked)
    ));
end
$$;
