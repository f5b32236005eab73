-- Purpose: the creation time in a UUID of version 7, to the millisecond. No job finishes before
-- it, so lookups by id skip older partitions.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz language sql immutable strict as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;
