-- Purpose: the kind to which the key of a job belongs; null if it belongs to the queue.
-- Derived from its key_id, not from the current declaration. Inlined, so no SET clause.
create or replace function jobq_private.key_kind(
    key_id uuid, queue text, concurrency_key text, kind text
)
returns text language sql immutable as $$
    select case when key_id <> jobq_private.limit_id(queue, null, concurrency_key) then kind end
$$;
