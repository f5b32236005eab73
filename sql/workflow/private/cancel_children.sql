-- Purpose: cancel those of these blocked jobs that can never run, since one of these jobs,
-- which they wait for, is dead or cancelled.
-- Invariant: the caller has their rows. Their open edges stay, so that a redrive has them wait
-- again. Returns how many. Raises: nothing.
create or replace function jobq_private.cancel_children(held uuid[], failed uuid[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _cancelled bigint;
begin
    update jobq_private.job as j
    set
        state = 'cancelled',
        cancel_reason = format('job_id %s, which it waited for, is %s', d.parent, d.ended_as),
        last_error_code = 'PARENT_FAILED',
        last_error = format('job_id %s is %s', d.parent, d.ended_as)
    from (
        select distinct on (e.child) e.child, e.parent, e.ended_as
        from jobq_private.open_edge as e
        where e.child = any(cancel_children.held)
        and e.parent = any(cancel_children.failed)
        and e.dooms
        order by e.child, e.parent
    ) as d
    where j.job_id = d.child and j.job_id = any(cancel_children.held);
    get diagnostics _cancelled = row_count;
    return _cancelled;
end
$$;

revoke all on function jobq_private.cancel_children from public;

comment on function jobq_private.cancel_children is
'Cancels blocked jobs that can never run.';
