-- Purpose: record that jobs have ended that others wait for, or that belong to batches.
-- Invariant: takes no lock that others wait for, so the caller's transaction can be
-- long. The next claim in any transaction resolves the row, else maintain().
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
