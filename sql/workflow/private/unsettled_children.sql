-- Purpose: those of these children that could be released or cancelled now, or wait for a job
-- whose end would leave no look.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_children(children uuid[], queues text[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
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
    left join jobq_private.job as p on p.job_id = e.parent
    where e.child = any(unsettled_children.children) and e.is_open and p.is_awaited is not true;
    return array(
        select c.job_id
        from jobq_private.job as c
        where c.job_id = any(unsettled_children.children)
        and c.state = 'blocked'
        and (
            not exists (
                select from jobq_private.edge as o where o.child = c.job_id and o.is_open
            )
            or c.job_id in (
                select b.child
                from unnest(_below, _failures, jobq_private.ends_of(_above))
                    as b (child, after_failure, ended_as)
                where b.ended_as is null
                or jobq_private.follows(b.ended_as, b.after_failure) is not null
            )
        )
        union all
        select i.job_id
        from unnest(unsettled_children.children) as i (job_id)
        where unsettled_children.queues is not null
        and jobq_private.state_of(i.job_id) is null
    );
end
$$;

revoke all on function jobq_private.unsettled_children from public;

comment on function jobq_private.unsettled_children is
'Children that have waited long enough, or of which a parent is not marked.';
