-- Purpose: add to each edge how its parent has ended, and what that means for a blocked
-- child: closes (it no longer waits for this parent), dooms (it can never run), or null:
-- it continues to wait; and whether the caller has locked the child.
-- Invariant: the caller's snapshot of the parents is later than its locks of children.
create or replace function jobq_private.end_edges(edges jobq_private.pending_edge[], held uuid[])
returns jobq_private.pending_edge[]
language sql
stable
as $$
    select array(
        select row(
            e.pending_id, e.about, e.child, e.parent, e.after_failure, p.ended_as,
            case
                when p.ended_as is null then null
                when p.ended_as = 'succeeded' or e.after_failure = 'run' then 'closes'
                when e.after_failure = 'cancel' or p.ended_as = 'gone' then 'dooms'
            end,
            e.child in (select h from unnest(held) as h)
        )::jobq_private.pending_edge
        from unnest(edges) with ordinality as e
        join unnest(jobq_private.ends_of(array(select d.parent from unnest(edges) as d)))
            with ordinality as p (ended_as, n) on p.n = e.ordinality
    )
$$;
