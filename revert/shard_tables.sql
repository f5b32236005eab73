-- Revert jobq:shard_tables from pg
begin;

drop table jobq_private.route, jobq_private.shard_epoch, jobq_private.shard;

commit;
