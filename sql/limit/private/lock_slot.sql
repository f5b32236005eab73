-- Purpose: which of 256 advisory locks guards the closing of a key, or the making of a
-- limit's row.
-- Invariant: few enough that no batch takes all of the server's. Inlined, so no SET
-- clause.
create or replace function jobq_private.lock_slot(limit_id uuid)
returns integer
language sql
immutable
parallel safe
as $$
    select pg_catalog.uuid_hash(limit_id) & 255
$$;
