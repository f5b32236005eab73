-- Purpose: close the edges of parents that have ended, release children without open
-- edges, cancel those that can never run, and mark live parents as awaited.
-- Invariant: only a transaction that has locked a blocked child closes its edges, with
-- a later snapshot of the parents, and then checks for open edges. So exactly one
-- transaction releases it, after the last parent. At most 10 edges per row of pending
-- and 1,000 more per call. Returns the rows that are still due, and those to postpone.
create or replace function jobq_private.settle_edges(
    pending jobq_private.pending[], queues text[],
    out due bigint[], out put_off bigint[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
declare
    _most constant integer := 10 + 1000 / cardinality(pending);
    _edges jobq_private.pending_edge[];
    _held uuid[];
    _ends text[];
begin
    _edges := array(
        select row(l.pending_id, l.about, e.child, e.parent, e.after_failure)::jobq_private.pending_edge
        from unnest(pending) as l
        cross join lateral (
            (
                select d.* from jobq_private.edge as d
                where l.about = 'parent' and d.parent = l.id and d.is_open and d.child > l.beyond and d.child <= l.upto
                order by d.child limit _most
            )
            union all
            (
                select d.* from jobq_private.edge as d
                where l.about = 'child' and d.child = l.id and d.is_open and d.parent > l.beyond and d.parent <= l.upto
                order by d.parent limit _most
            )
        ) as e
    );
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.child from unnest(_edges) as e
            union
            select l.id from unnest(pending) as l where l.about = 'child'
        ))
        and j.state = 'blocked' and (queues is null or j.queue = any(queues))
        order by j.job_id
        for update skip locked
    );
    -- The end of a parent adds a row to pending only if the parent was marked as
    -- awaited before its end locked the row.
    update jobq_private.job as j set is_awaited = true
    where j.ctid = any(array(
        select p.ctid
        from jobq_private.job as p
        where p.job_id = any(array(
            select e.parent from unnest(_edges) as e where e.about = 'child'
        ))
        and not p.is_awaited and (queues is null or p.queue = any(queues))
        order by p.job_id
        for no key update skip locked
    ));
    _ends := jobq_private.ends_of(array(select e.parent from unnest(_edges) as e));
    perform jobq_private.close_edges(_edges, _ends, _held, queues);
    put_off := jobq_private.unsettled(pending, _edges, _ends, _held, queues);
    with last as materialized (
        select e.pending_id, (array_agg(o.id order by o.id desc))[1] as id
        from unnest(_edges) as e
        cross join lateral (
            select case e.about when 'parent' then e.child else e.parent end as id
        ) as o
        group by e.pending_id
        having count(*) = _most
    ),
    -- A postponed row keeps the edges up to here; another row has the rest.
    split as (
        insert into jobq_private.pending (about, id, beyond, upto)
        select l.about, l.id, n.id, l.upto
        from last as n
        join unnest(pending) as l on l.pending_id = n.pending_id
        where n.pending_id = any(put_off)
    ),
    moved_on as (
        update jobq_private.pending as l
        set
            beyond = case when n.pending_id = any(put_off) then l.beyond else n.id end,
            upto = case when n.pending_id = any(put_off) then n.id else l.upto end,
            due_at = clock_timestamp()
        from last as n
        where l.pending_id = n.pending_id
    )
    select coalesce(array_agg(n.pending_id) filter (where n.pending_id <> all(put_off)), '{}') into due
    from last as n;
end
$$;
