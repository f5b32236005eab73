-- Purpose: the number of the advisory lock (of 256) that guards the closing of a key,
-- or the insertion of a limit's row. Inlined, so no SET clause.
create or replace function jobq_private.lock_slot(limit_id uuid)
returns integer language sql immutable as $$
    select pg_catalog.uuid_hash(limit_id) & 255
$$;
