-- Purpose: hold the gate of a lane, or of a kind in a queue, until a time; a hold that lasts longer stays.
-- The key stands beside it for who looks.
-- Invariant: waits for claims that pass the gate; a gate that has no row is made under the lock
-- that claims try before they make one, so that none waits for this. Raises: nothing.
create or replace function jobq_private.store_hold(
    gate_id uuid, queue text, kind text, until timestamptz, reason text,
    concurrency_key text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    perform pg_advisory_xact_lock(_making, jobq_private.lane_slot(gate_id));
    insert into jobq_private.gate as g (
        gate_id, queue, kind, held_until, hold_reason, concurrency_key
    )
    values (
        store_hold.gate_id, store_hold.queue, store_hold.kind, store_hold.until,
        left(store_hold.reason, 512), store_hold.concurrency_key
    )
    on conflict on constraint gate_pkey do update
    set
        concurrency_key = excluded.concurrency_key,
        hold_reason = case
            when excluded.held_until >= g.held_until then excluded.hold_reason
            else g.hold_reason
        end,
        held_until = greatest(g.held_until, excluded.held_until);
end
$$;

revoke all on function jobq_private.store_hold from public;

comment on function jobq_private.store_hold is
'Holds the gate of a lane or a kind until a time.';
