-- Purpose: Lists which shards receive new keys and since when, newest first.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: number of the epoch.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: the start of the epoch; may be in the future.
-- Column keys_until: when the last idempotency key of the previous epoch expires.
-- Returns: one row per epoch; none in a database outside a cluster.
-- Example: select epoch, shard_ids from jobq_internal.list_epochs();
create or replace function jobq_internal.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;
grant execute on function jobq_internal.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
