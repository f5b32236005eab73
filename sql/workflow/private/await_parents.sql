-- Purpose: mark the live jobs that these children wait for, so that their ends leave a look.
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
    _found tid[];
begin
    _found := array(
        select j.ctid
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.parent
            from jobq_private.edge as e
            where e.child = any(await_parents.children) and e.is_open
        ))
        and not j.is_awaited
        and (await_parents.queues is null or j.queue = any(await_parents.queues))
        order by j.job_id
        for no key update skip locked
    );
    update jobq_private.job as j set is_awaited = true where j.ctid = any(_found);
end
$$;

revoke all on function jobq_private.await_parents from public;

comment on function jobq_private.await_parents is
'Marks the live jobs that these children wait for.';
