-- Purpose: the limit that a lane passes: its own, or where the limits are those of a kind for each key that
-- of the key in all queues.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_limit_id(lane_id uuid, concurrency_key text, kind text)
returns uuid
language sql
stable
parallel safe
as $$
    select coalesce(jobq_private.key_limit_id(kind, concurrency_key), lane_id)
$$;
