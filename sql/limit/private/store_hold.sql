-- Purpose: hold a key, or without a key a kind, in a queue until a time; a hold that
-- lasts longer stays. A hold for a dead job lasts while that is there.
-- Invariant: waits for claims that have locked the limit. A limit that has no row is
-- made under the lock that claims try before they make one, so that none waits for
-- this. A caller that stores many locks the slots of all before.
create or replace function jobq_private.store_hold(
    queue text, kind text, concurrency_key text, until timestamptz, reason text,
    dead_job_id uuid default null
)
returns void
language plpgsql
as $$
declare
    _limit_id constant uuid := jobq_private.limit_id(queue, kind, concurrency_key);
begin
    perform pg_advisory_xact_lock(
        jobq_private.lock_class('gating'), jobq_private.lock_slot(_limit_id)
    );
    insert into jobq_private.limit_state as g (
        limit_id, queue, kind, concurrency_key, held_until, hold_reason, dead_job_id
    )
    values (
        _limit_id, store_hold.queue, store_hold.kind, store_hold.concurrency_key,
        store_hold.until, left(store_hold.reason, 512), store_hold.dead_job_id
    )
    on conflict on constraint limit_state_pkey do update
    set
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
