-- Purpose: lock these gates of a queue or its lanes, and return those that were free.
-- Invariant: SKIP LOCKED, and a gate that has no row is made under an advisory lock that is
-- only tried, so nobody waits. A repeatable snapshot that is older than somebody's passing
-- fails here. Raises: nothing.
create or replace function jobq_private.hold_gates(queue text, gates uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    insert into jobq_private.gate (gate_id, queue)
    select n.gate_id, hold_gates.queue
    from (
        select u.gate_id
        from unnest(hold_gates.gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        offset 0
    ) as n
    where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(n.gate_id))
    on conflict on constraint gate_pkey do nothing;
    return array(
        select g.gate_id
        from jobq_private.gate as g
        where g.gate_id = any (hold_gates.gates)
        for update skip locked
    );
end
$$;

revoke all on function jobq_private.hold_gates from public;

comment on function jobq_private.hold_gates is
'Locks gates, and returns those that were free.';
