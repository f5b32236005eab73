-- Purpose: close the edges of parents that have ended, then release the children that have
-- none left, and cancel those that can never run.
-- Invariant: whoever has a child's row locked, and nobody else, closes its edges and then
-- looks, with a new snapshot, whether any is left. So the last of two parents releases it, and
-- one of them only. Bounded: 5,000 edges at a call. Returns how many jobs moved.
-- Raises: nothing.
create or replace function jobq_private.settle_edges(parents uuid[], children uuid[], queues text[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _touched uuid[];
    _over uuid[];
    _failed uuid[];
    _held uuid[];
    _doomed bigint := 0;
begin
    select
        array_agg(t.child), array_agg(t.parent) filter (where t.closes),
        array_agg(t.parent) filter (where not t.closes)
    into _touched, _over, _failed
    from (
        select e.child, e.parent, e.closes
        from jobq_private.open_edge as e
        left join jobq_private.job as c on c.job_id = e.child and c.state = 'blocked'
        where (
            e.parent = any(settle_edges.parents) or e.child = any(settle_edges.children)
        )
        and (e.closes or (e.dooms and c.job_id is not null))
        and (settle_edges.queues is null or e.ended_as <> 'gone')
        limit 5000
    ) as t;
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_touched || settle_edges.children)
        and j.state = 'blocked'
        and (settle_edges.queues is null or j.queue = any(settle_edges.queues))
        order by j.job_id
        for update skip locked
    );
    if _over is not null then
        perform jobq_private.close_edges(_touched, _over, _held, settle_edges.queues);
    end if;
    if _failed is not null then
        _doomed := jobq_private.cancel_children(_held, _failed);
    end if;
    return _doomed + jobq_private.release_children(_held);
end
$$;

revoke all on function jobq_private.settle_edges from public;

comment on function jobq_private.settle_edges is
'Closes the edges of parents that have ended, and releases or cancels their children.';
