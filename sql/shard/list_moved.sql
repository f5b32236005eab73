-- Purpose: Lists which of these jobs have moved to another shard.
-- Invariant: reads only. Raises: nothing.
-- Column shard_id: number of the other shard.
-- Example: select job_id, shard_id from jobq_internal.list_moved('{}');
create or replace function jobq_internal.list_moved(job_ids uuid[])
returns table (job_id uuid, shard_id integer) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select m.job_id, m.shard_id
    from jobq_private.moved_job as m
    where m.job_id = any(list_moved.job_ids) and m.shard_id is not null
$$;
grant execute on function jobq_internal.list_moved
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
