-- Purpose: note that jobs have ended for which others wait, or which belong to batches.
-- Invariant: takes no lock that another could wait for, so that the caller's transaction may
-- last. claim() resolves what its own transaction has left (jobq.looks); the workers that
-- are woken, or maintain(), the rest. Raises: nothing.
create or replace function jobq_private.leave_looks(endings jobq_private.ending[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.look (about, id)
    select 'parent', e.job_id from unnest(leave_looks.endings) as e where e.is_awaited
    union all
    select distinct 'batch', e.batch_id
    from unnest(leave_looks.endings) as e
    where e.batch_id is not null;
    perform set_config('jobq.looks', 'on', true);
    perform jobq_private.wake(array(
        select distinct e.queue from unnest(leave_looks.endings) as e
    ));
end
$$;

revoke all on function jobq_private.leave_looks from public;

comment on function jobq_private.leave_looks is
'Notes that jobs have ended for which others wait, or which belong to batches.';
