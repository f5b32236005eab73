-- Purpose: which shards got new keys from when on, the newest first, and for how long keys of
-- the epochs before may live.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: its number.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: from when on; it may lie ahead.
-- Column keys_until: until when idempotency keys of the epoch before may live.
-- Returns: a row for each epoch; none in a database that is in no cluster.
-- Example: select epoch, shard_ids from jobq_internal.list_epochs();
create or replace function jobq_internal.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;

grant execute on function jobq_internal.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_epochs is
'Lists which shards receive new keys and since when, newest first.';
