-- Purpose: close the edges of parents that have ended, release children without open
-- edges, cancel those that can never run, and mark live parents as awaited.
-- Invariant: only a transaction that has locked a blocked child closes its edges, with a later
-- snapshot of the parents, and then checks for open edges. So exactly one transaction releases
-- it, after the last parent. At most 10 edges per row of pending and 1,000 more per call; a row
-- moves on over its edges, and begins again after the last one if it has passed some that must
-- wait. Returns the rows with more edges, and those to postpone.
create or replace function jobq_private.settle_edges(
    pending jobq_private.pending[], queues text[], out due bigint[], out put_off bigint[]
)
language plpgsql as $$
declare
    _most constant integer := 10 + 1000 / cardinality(pending);
    _edges jobq_private.pending_edge[];
    _held uuid[];
    _watched uuid[];
    _passed bigint[];
begin
    due := '{}';
    put_off := '{}';
    if not exists (select from unnest(pending) as l where l.about in ('parent', 'child')) then
        return;
    end if;
    _edges := array(
        select row(
            l.pending_id, l.about, e.child, e.parent, e.after_failure, null, null, null
        )::jobq_private.pending_edge
        from unnest(pending) as l
        cross join lateral (
            (
                select d.* from jobq_private.edge as d
                where l.about = 'parent' and d.parent = l.id and d.is_open and d.child > l.beyond
                order by d.child limit _most
            )
            union all
            (
                select d.* from jobq_private.edge as d
                where l.about = 'child' and d.child = l.id and d.is_open and d.parent > l.beyond
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
        and (j.state = 'blocked') is true and (queues is null or j.queue = any(queues))
        order by j.job_id
        for update skip locked
    );
    _watched := jobq_private.watch_parents(
        array(select e.parent from unnest(_edges) as e where e.about = 'child'), queues
    );
    _edges := jobq_private.end_edges(_edges, _held);
    perform jobq_private.close_edges(_edges, _held, queues);
    _passed := jobq_private.unsettled(pending, _edges, _held, _watched, queues);
    with moved_on as (
        update jobq_private.pending as l
        set
            beyond = n.id, has_passed = l.has_passed or l.pending_id = any(_passed),
            due_at = clock_timestamp()
        from (
            select e.pending_id, (array_agg(o.id order by o.id desc))[1] as id
            from unnest(_edges) as e
            cross join lateral (
                select case e.about when 'parent' then e.child else e.parent end as id
            ) as o
            group by e.pending_id
            having count(*) = _most
        ) as n
        where l.pending_id = n.pending_id
        returning l.pending_id
    )
    select coalesce(array_agg(m.pending_id), '{}') into due from moved_on as m;
    put_off := array(
        select l.pending_id
        from unnest(pending) as l
        where (l.has_passed or l.pending_id = any(_passed)) and l.pending_id <> all(due)
    );
end
$$;
