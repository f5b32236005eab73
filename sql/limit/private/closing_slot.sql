-- Purpose: which of 256 advisory locks guards the closing of a lane: all lanes of a key share one, since the
-- end of a job in one queue can make room for the same key in another.
-- Invariant: few enough that no batch takes all of the server's. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.closing_slot(lane_id uuid, concurrency_key text)
returns integer
language sql
immutable
parallel safe
as $$
    select coalesce(pg_catalog.hashtext(concurrency_key), pg_catalog.uuid_hash(lane_id)) & 255
$$;
