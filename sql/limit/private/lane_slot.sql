-- Purpose: which of 256 advisory locks guards the making of a lane's or a limit's row.
-- Invariant: few enough that no batch takes all of the server's. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.lane_slot(lane_id uuid)
returns integer
language sql
immutable
parallel safe
as $$
    select pg_catalog.uuid_hash(lane_id) & 255
$$;
