-- Purpose: hold the limit of a lane, or of a kind in a queue, until a time; a hold that lasts longer stays.
-- The key stands beside it for who looks. A hold for a dead job lasts while that is there.
-- Invariant: waits for claims that pass the limit; a limit that has no row is made under the lock
-- that claims try before they make one, so that none waits for this. Raises: nothing.
create or replace function jobq_private.store_hold(
    limit_id uuid, queue text, kind text, until timestamptz, reason text,
    concurrency_key text default null, dead_job_id uuid default null
)
returns void
language plpgsql
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    perform pg_advisory_xact_lock(_making, jobq_private.lane_slot(limit_id));
    insert into jobq_private.limit_state as g (
        limit_id, queue, kind, held_until, hold_reason, concurrency_key, dead_job_id
    )
    values (
        store_hold.limit_id, store_hold.queue, store_hold.kind, store_hold.until,
        left(store_hold.reason, 512), store_hold.concurrency_key, store_hold.dead_job_id
    )
    on conflict on constraint limit_state_pkey do update
    set
        concurrency_key = excluded.concurrency_key,
        hold_reason = case
            when excluded.held_until >= g.held_until then excluded.hold_reason
            else g.hold_reason
        end,
        dead_job_id = case
            when excluded.held_until >= g.held_until then excluded.dead_job_id
            else g.dead_job_id
        end,
        held_until = greatest(g.held_until, excluded.held_until);
end
$$;
