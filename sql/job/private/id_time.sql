-- Purpose: return the creation time of a UUID of version 7, to the millisecond.
-- Invariant: an archive row is never older than its id, so lookups by id can skip older
-- partitions. Raises: nothing.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz
language sql
immutable
strict
parallel safe
as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;
