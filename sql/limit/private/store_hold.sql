-- Purpose: hold a key, or without a key a kind, in a queue until a time, or while a
-- dead job exists. The longest hold applies.
-- Invariant: waits for no lock.
create or replace function jobq_private.store_hold(
    queue text, kind text, concurrency_key text, until timestamptz, reason text,
    dead_job_id uuid default null
)
returns void language sql as $$
    insert into jobq_private.limit_hold (
        limit_id, queue, kind, concurrency_key, held_until, reason, dead_job_id
    )
    values (
        jobq_private.limit_id(queue, kind, concurrency_key),
        store_hold.queue, store_hold.kind, store_hold.concurrency_key,
        store_hold.until, left(store_hold.reason, 512), store_hold.dead_job_id
    )
$$;
