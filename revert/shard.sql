-- Revert jobq:shard from pg
-- Made by sql/snapshot.py from sql/shard/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.put_shard;
drop function if exists jobq.put_epoch;
drop function if exists jobq.list_shards;
drop function if exists jobq.list_epochs;
drop function if exists jobq.list_declarations;
drop function if exists jobq.list_router_statements;
drop function if exists jobq.choose_shard;
drop function if exists jobq_private.router_function;
drop function if exists jobq.shard_of;
drop function if exists jobq_private.router_calls;
drop view if exists jobq_private.routed_function;
drop function if exists jobq_private.become_shard;
drop function if exists jobq_private.own_shard;

commit;
