-- Purpose: the kind of which a job's lane is, where that is one of a kind's key; null for all others.
-- Invariant: the lane itself says so, whatever the kind has declared since. Raises: nothing.
create or replace function jobq_private.lane_kind(
    lane_id uuid, queue text, concurrency_key text, kind text
)
returns text
language sql
stable
parallel safe
as $$
    select case
        when lane_id <> jobq_private.lane_id(queue, concurrency_key) then kind
    end
$$;
