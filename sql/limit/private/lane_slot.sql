-- Purpose: which of 256 advisory locks guards the closing of a lane.
-- Invariant: few enough that no batch takes all of the server's. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.lane_slot(lane_id uuid)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.uuid_hash(lane_id) & 255
$$;

revoke all on function jobq_private.lane_slot from public;

comment on function jobq_private.lane_slot is
'Which of 256 advisory locks guards the closing of a lane.';
