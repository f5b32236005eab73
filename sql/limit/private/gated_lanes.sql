-- Purpose: lock lanes that wait for gates of kinds, for each gate as many as it lets jobs pass.
-- Invariant: bounded; SKIP LOCKED. Lanes that wait for a gate that is gone are among them. Raises:
-- nothing.
create or replace function jobq_private.gated_lanes(queue text, now timestamptz)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return array(
        select o.lane
        from jobq_private.awaited_gates(gated_lanes.queue, gated_lanes.now) as a
        cross join lateral (
            select t as lane
            from jobq_private.lane as t
            where t.queue = gated_lanes.queue and t.gate_id = a.gate_id
            order by t.lane_id, t.priority
            limit least(coalesce(a.room, 100), 100)
            for update skip locked
        ) as o
    );
end
$$;

revoke all on function jobq_private.gated_lanes from public;

comment on function jobq_private.gated_lanes is
'Locks lanes that wait for gates of kinds, as many as these let pass.';
