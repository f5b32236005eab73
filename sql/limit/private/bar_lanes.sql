-- Purpose: lanes wait for the gates of kinds: no claim looks at them until such a gate has room.
-- Invariant: the caller holds the lanes' locks. Whether a gate has room is counted anew by each
-- claim, so nobody must open it, but who adds a job that goes before the one that waits. Raises: nothing.
create or replace function jobq_private.bar_lanes(
    lanes uuid[], gates uuid[], queue text, priority integer
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.lane as l
    set
        state = 'full', gate_id = b.gate_id, key_gate_id = null,
        open_at = coalesce((
            select j.run_at
            from jobq_private.job as j
            where j.queue = bar_lanes.queue
            and j.lane_id = b.lane_id
            and j.priority = bar_lanes.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ), '-infinity')
    from unnest(bar_lanes.lanes, bar_lanes.gates) as b (lane_id, gate_id)
    where l.lane_id = b.lane_id
    and l.priority = bar_lanes.priority
    and l.queue = bar_lanes.queue
$$;

revoke all on function jobq_private.bar_lanes from public;

comment on function jobq_private.bar_lanes is
'Has lanes wait for the gates of kinds.';
