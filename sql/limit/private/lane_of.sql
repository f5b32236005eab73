-- Purpose: the lane in which a new job waits: that of its key, else that of its kind where that
-- has limits; null for all others.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_of(
    queue text, concurrency_key text, kind text, is_limited boolean
)
returns uuid
language sql
stable
parallel safe
as $$
    select case
        when concurrency_key is not null then jobq_private.key_lane_id(queue, concurrency_key, kind)
        when is_limited then jobq_private.kind_lane_id(queue, kind)
    end
$$;
