-- Purpose: the rows of pending that must wait for a row that another transaction holds,
-- or for a login that sees more queues.
-- Invariant: edges (of these rows) and ends are parallel; held has the children that
-- the caller has locked. Reads only.
create or replace function jobq_private.unsettled(
    pending jobq_private.pending[], edges jobq_private.pending_edge[], ends text[], held uuid[],
    queues text[]
)
returns bigint[]
language sql
stable
set jit = off
set enable_hashjoin = off
as $$
    select array(
        select l.pending_id
        from unnest(pending) as l
        left join jobq_private.job as c on c.job_id = l.id
        where l.about = 'child'
        and l.id not in (select h from unnest(held) as h)
        and (
            c.state = 'blocked'
            or (c.job_id is null and queues is not null and jobq_private.state_of(l.id) is null)
        )
        union
        select t.pending_id
        from rows from (unnest(edges), unnest(ends))
            as t (pending_id, about, child, parent, after_failure, ended_as)
        left join jobq_private.job as c on c.job_id = t.child
        left join jobq_private.job as p on p.job_id = t.parent and t.about = 'child'
        where case
            when t.ended_as is null then t.about = 'child' and p.is_awaited is not true
            when t.child in (select h from unnest(held) as h)
            then queues is not null and t.ended_as = 'gone'
            when c.state = 'blocked'
            then jobq_private.edge_outcome(t.ended_as, t.after_failure) is not null
            else queues is not null
        end
    )
$$;
