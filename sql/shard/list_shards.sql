-- Purpose: Lists the databases of the cluster.
-- Invariant: reads only. Raises: nothing.
-- Column url: the address for routers and clients.
-- Column is_own: whether it is this database.
-- Column successor: the shard that takes over its jobs, if any.
-- Column removed_at: when it was removed; its ids lead to the successor since.
-- Returns: one row per shard; none in a database outside a cluster.
-- Example: select shard_id, url from jobq_internal.list_shards();
create or replace function jobq_internal.list_shards()
returns table (
    shard_id integer, url text, is_own boolean, successor integer, removed_at timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select s.shard_id, s.url, s.is_own, s.successor, s.removed_at
    from jobq_private.shard as s
    order by s.shard_id
$$;
grant execute on function jobq_internal.list_shards
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
