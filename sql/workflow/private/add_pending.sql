-- Purpose: note that jobs have ended for which others wait, or which belong to batches.
-- Invariant: takes no lock that another could wait for, so that the caller's transaction may
-- last. The next claim resolves it, in this transaction or another; else maintain(). Raises: nothing.
create or replace function jobq_private.add_pending(endings jobq_private.ending[])
returns void
language plpgsql
as $$
begin
    insert into jobq_private.pending (about, id)
    select 'parent', e.job_id from unnest(add_pending.endings) as e where e.is_awaited
    union all
    select distinct 'batch', e.batch_id
    from unnest(add_pending.endings) as e
    where e.batch_id is not null;
    perform jobq_private.wake(array(
        select distinct e.queue from unnest(add_pending.endings) as e
    ));
end
$$;
