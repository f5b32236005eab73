-- Purpose: the open edges between these parents and any children, and these children and any
-- parents, behind which something is left to do.
-- Invariant: reads only; at most 1,000, as parallel arrays; null for none. A child that is not
-- blocked gets no more than edges closed of parents that have succeeded, which stays true. Who
-- does not see all queues must not take for gone what it cannot see. Children are looked up one
-- by one by their ids, whatever the statistics say. Raises: nothing.
create or replace function jobq_private.edges_to_settle(
    parents uuid[], children uuid[], queues text[], out over_children uuid[],
    out over_parents uuid[]
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
as $$
declare
    _below uuid[];
    _above uuid[];
    _failures text[];
begin
    select array_agg(e.child), array_agg(e.parent), array_agg(e.after_failure)
    into _below, _above, _failures
    from jobq_private.edge as e
    where e.child = any(edges_to_settle.children) and e.is_open;
    select array_agg(t.child), array_agg(t.parent) into over_children, over_parents
    from (
        select o.child, o.parent
        from (
            select e.child, e.parent, e.after_failure, p.ended_as
            from unnest(
                edges_to_settle.parents, jobq_private.ends_of(edges_to_settle.parents)
            ) as p (parent, ended_as)
            join jobq_private.edge as e on e.parent = p.parent and e.is_open
            where p.ended_as is not null
            union all
            select b.child, b.parent, b.after_failure, b.ended_as
            from unnest(_below, _above, _failures, jobq_private.ends_of(_above))
                as b (child, parent, after_failure, ended_as)
            where b.ended_as is not null
        ) as o
        left join lateral (
            select j.state from jobq_private.job as j where j.job_id = o.child offset 0
        ) as c on true
        where (
            o.ended_as = 'succeeded'
            or (
                c.state = 'blocked'
                and jobq_private.follows(o.ended_as, o.after_failure) is not null
            )
        )
        and (edges_to_settle.queues is null or o.ended_as <> 'gone')
        limit 1000
    ) as t;
end
$$;

revoke all on function jobq_private.edges_to_settle from public;

comment on function jobq_private.edges_to_settle is
'The open edges of parents that have ended.';
