-- Purpose: the moment at which a UUID of version 7 was made, to the millisecond.
-- Invariant: a job's archive row is never older than its id, which lets lookups by id
-- pass over older partitions. Raises: nothing.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz
language sql
immutable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;

revoke all on function jobq_private.id_time from public;

comment on function jobq_private.id_time is
'The moment at which a UUID of version 7 was made.';
