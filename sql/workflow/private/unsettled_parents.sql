-- Purpose: those of these parents behind whose end something is left to do.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see whole is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_parents(parents uuid[], queues text[])
returns uuid[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
    select array(
        select p.parent
        from unnest(unsettled_parents.parents, jobq_private.ends_of(unsettled_parents.parents))
            as p (parent, ended_as)
        cross join lateral (
            select e.parent
            from jobq_private.edge as e
            left join jobq_private.job as c on c.job_id = e.child
            where e.parent = p.parent
            and e.is_open
            and (
                p.ended_as = 'succeeded'
                or (
                    c.state = 'blocked'
                    and jobq_private.follows(p.ended_as, e.after_failure) is not null
                )
                or (
                    unsettled_parents.queues is not null
                    and coalesce(c.queue <> all(unsettled_parents.queues), true)
                )
            )
            limit 1
        ) as o
        where p.ended_as is not null
    )
$$;

revoke all on function jobq_private.unsettled_parents from public;

comment on function jobq_private.unsettled_parents is
'Parents behind whose end something is left to do.';
