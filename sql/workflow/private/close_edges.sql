-- Purpose: close edges between children and parents, given as parallel arrays, as far as these
-- have ended; cancel the children that can never run now.
-- Invariant: of a blocked child only by who has its row, and as its parents are seen since. What
-- is locked is left. A child that has ended is released by nobody, and may be redriven, which
-- leaves a look. Returns how many edges it has closed and
-- how many children cancelled. Raises: nothing.
create or replace function jobq_private.close_edges(
    children uuid[], parents uuid[], held uuid[], queues text[], out closed bigint,
    out cancelled bigint
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _ends constant text[] := jobq_private.ends_of(parents);
begin
    with over as materialized (
        select e.child, e.parent
        from unnest(children, parents, _ends) as t (child, parent, ended_as)
        join jobq_private.edge as e
            -- Not by edge_open_idx, which has all that a child waits for.
            on e.child = t.child and e.parent = t.parent and coalesce(e.is_open, false)
        where (
            e.child in (select h.job_id from unnest(close_edges.held) as h (job_id))
            and jobq_private.follows(t.ended_as, e.after_failure) = 'closes'
        )
        or (
            close_edges.queues is null
            and t.ended_as = 'succeeded'
            and not exists (
                select from jobq_private.job as j
                where j.job_id = e.child and j.state = 'blocked'
            )
        )
        for update of e skip locked
    )
    update jobq_private.edge as e
    set is_open = false
    from over as o
    where e.child = o.child and e.parent = o.parent;
    get diagnostics closed = row_count;
    cancelled := jobq_private.cancel_children(children, parents, _ends, held);
end
$$;

revoke all on function jobq_private.close_edges from public;

comment on function jobq_private.close_edges is
'Closes the edges of parents that have ended, and cancels children that can never run.';
