-- Purpose: lock these limits of a queue or its lanes, and return those that were free.
-- Invariant: SKIP LOCKED, and a limit that has no row is made under an advisory lock that is
-- only tried, so nobody waits. A repeatable snapshot that is older than somebody's passing
-- fails here. Raises: nothing.
create or replace function jobq_private.lock_limits(queue text, limits uuid[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    insert into jobq_private.limit_state (limit_id, queue)
    select n.limit_id, lock_limits.queue
    from (
        select u.limit_id
        from unnest(lock_limits.limits) as u (limit_id)
        where not exists (select from jobq_private.limit_state as g where g.limit_id = u.limit_id)
        offset 0
    ) as n
    where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(n.limit_id))
    on conflict on constraint limit_state_pkey do nothing;
    return array(
        select g.limit_id
        from jobq_private.limit_state as g
        where g.limit_id = any (lock_limits.limits)
        for update skip locked
    );
end
$$;
