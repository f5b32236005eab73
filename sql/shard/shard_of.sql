-- Purpose: Returns the shard of a job, which is part of its id.
-- Invariant: the tenth byte of the id, the two digits before the last dash; a database outside a
-- cluster is shard 0. Raises: nothing.
-- Returns: number of the shard, 0 to 255; null for null.
-- Example: select jobq_internal.shard_of('0198c0de-1234-7abc-9f03-0123456789ab');
create or replace function jobq_internal.shard_of(job_id uuid)
returns integer language sql immutable strict parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
    select get_byte(uuid_send(shard_of.job_id), 9)
$$;
grant execute on function jobq_internal.shard_of
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
