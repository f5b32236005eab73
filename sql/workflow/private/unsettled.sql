-- Purpose: the rows of pending that must be tried again, because another transaction
-- holds a row that they need, or because only a login that sees more queues can decide.
-- Invariant: edges are those of these rows; held has the children that the caller has
-- locked, watched the parents whose ends will add rows of their own. Reads only.
create or replace function jobq_private.unsettled(
    pending jobq_private.pending[], edges jobq_private.pending_edge[], held uuid[],
    watched uuid[], queues text[]
)
returns bigint[] language sql stable set jit = off set enable_hashjoin = off as $$
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
        from unnest(edges) as t
        left join jobq_private.job as c on c.job_id = t.child
        where case
            when t.outcome = 'redriven' then true
            when t.ended_as is null
            then t.about = 'child' and t.parent not in (select w from unnest(watched) as w)
            when t.is_held then queues is not null and t.ended_as = 'gone'
            when c.state = 'blocked' then t.outcome is not null
            else queues is not null
        end
    )
$$;
