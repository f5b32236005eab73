-- Purpose: close the edges between these parents, which have ended, and these children.
-- Invariant: of a blocked child only by who has its row. What is locked is left. A child that
-- has ended is released by nobody, and may be redriven, which leaves a look.
-- Raises: nothing.
create or replace function jobq_private.close_edges(children uuid[], parents uuid[], held uuid[], queues text[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
    with over as materialized (
        select e.child, e.parent
        from jobq_private.edge as e
        where e.child = any(close_edges.children)
        and e.parent = any(close_edges.parents)
        and e.is_open
        and (
            e.child = any(close_edges.held)
            or (close_edges.queues is null and not exists (
                select from jobq_private.job as j
                where j.job_id = e.child and j.state = 'blocked'
            ))
        )
        for update skip locked
    )
    update jobq_private.edge as e
    set is_open = false
    from over as o
    where e.child = o.child
    and e.parent = o.parent
    and exists (
        select from jobq_private.open_edge as w
        where w.child = o.child and w.parent = o.parent and w.closes
    )
$$;

revoke all on function jobq_private.close_edges from public;

comment on function jobq_private.close_edges is
'Closes the edges between parents that have ended and their children.';
