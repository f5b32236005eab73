-- Purpose: mark the jobs that these children wait for: live ones, so that their ends leave a look,
-- and finished ones, so that they are kept.
-- Invariant: under the rows' locks, before they end; what somebody has locked is marked at a
-- later look. Raises: nothing.
create or replace function jobq_private.await_parents(children uuid[], queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _parents constant uuid[] := array(
        select distinct e.parent
        from jobq_private.edge as e
        where e.child = any(await_parents.children) and e.is_open
    );
    _since constant timestamptz := (
        select jobq_private.id_time(p.job_id) - interval '1 day'
        from unnest(_parents) as p (job_id)
        order by p.job_id
        limit 1
    );
    _found tid[];
begin
    _found := array(
        select j.ctid
        from jobq_private.job as j
        where j.job_id = any(_parents)
        and not j.is_awaited
        and (await_parents.queues is null or j.queue = any(await_parents.queues))
        order by j.job_id
        for no key update skip locked
    );
    update jobq_private.job as j set is_awaited = true where j.ctid = any(_found);
    with found as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.job_id = any(_parents)
        and a.finished_at >= _since
        and not a.is_awaited
        and (await_parents.queues is null or a.queue = any(await_parents.queues))
        order by a.job_id
        for no key update skip locked
    )
    update jobq_private.job_archive as a
    set is_awaited = true
    from found as f
    where a.job_id = f.job_id and a.finished_at = f.finished_at;
end
$$;

revoke all on function jobq_private.await_parents from public;

comment on function jobq_private.await_parents is
'Marks the jobs that these children wait for.';
