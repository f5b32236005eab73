-- Purpose: close the edges of parents that have ended, then release the children that have
-- none left, and cancel those that can never run.
-- Invariant: whoever has a child's row locked, and nobody else, closes its edges, as the parents
-- are seen since, and then looks, with a new snapshot, whether any is left. So the last of two
-- parents releases it, and one of them only. Bounded: 1,000 edges at a call. Returns how many
-- jobs moved, and how many edges were closed. Raises: nothing.
create or replace function jobq_private.settle_edges(
    parents uuid[], children uuid[], queues text[], out moved bigint, out closed bigint
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _touched uuid[];
    _over uuid[];
    _held uuid[];
begin
    moved := 0;
    closed := 0;
    select t.over_children, t.over_parents into _touched, _over
    from jobq_private.edges_to_settle(
        settle_edges.parents, settle_edges.children, settle_edges.queues
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
        select c.cancelled, c.closed into moved, closed
        from jobq_private.close_edges(_touched, _over, _held, settle_edges.queues) as c;
    end if;
    moved := moved + jobq_private.release_children(_held);
end
$$;

revoke all on function jobq_private.settle_edges from public;

comment on function jobq_private.settle_edges is
'Closes the edges of parents that have ended, and releases or cancels their children.';
