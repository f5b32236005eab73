-- Purpose: add to each edge how its parent has ended, and what that means for a blocked
-- child: closes (it no longer waits for this parent), dooms (it can never run), null: it
-- continues to wait, or redriven: another transaction is about to redrive the parent,
-- and would not see that the edge was closed; and whether the caller has locked the child.
-- Invariant: the caller's snapshot of the parents is later than its locks of children.
create or replace function jobq_private.end_edges(edges jobq_private.pending_edge[], held uuid[])
returns jobq_private.pending_edge[] language sql as $$
    with ended as materialized (
        select e.*, p.ended_as as now_ended_as, e.ordinality as n
        from unnest(edges) with ordinality as e
        join unnest(jobq_private.ends_of(array(select d.parent from unnest(edges) as d)))
            with ordinality as p (ended_as, n) on p.n = e.ordinality
    ),
    steady as materialized (
        select a.job_id
        from jobq_private.job_archive as a
        where a.job_id = any(array(
            select e.parent from ended as e
            where e.after_failure = 'run' and e.now_ended_as in ('dead', 'cancelled')
        ))
        and a.finished_at >= (
            select jobq_private.id_time(e.parent) - interval '1 day'
            from ended as e order by e.parent limit 1
        )
        for key share skip locked
    )
    select coalesce(array_agg(
        row(
            e.pending_id, e.about, e.child, e.parent, e.after_failure, e.now_ended_as,
            case
                when e.now_ended_as is null then null
                when e.now_ended_as = 'succeeded' then 'closes'
                when e.after_failure = 'run' then case
                    when e.now_ended_as = 'gone' or e.parent in (select s.job_id from steady as s)
                    then 'closes' else 'redriven'
                end
                when e.after_failure = 'cancel' or e.now_ended_as = 'gone' then 'dooms'
            end,
            e.child in (select h from unnest(held) as h)
        )::jobq_private.pending_edge
        order by e.n
    ), '{}')
    from ended as e
$$;
