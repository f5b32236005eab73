-- Verify jobq:shard_tables on pg
begin;

select shard_id, url, is_own, successor, removed_at from jobq_private.shard where false;
select epoch, shard_ids, began_at from jobq_private.shard_epoch where false;

select function_name, class, detail from jobq_private.route where false;

rollback;
