-- Revert jobq:shard from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop function if exists jobq_internal.shard_of;
drop function if exists jobq_internal.send_jobs;
drop function if exists jobq_internal.receive_jobs;
drop function if exists jobq_internal.put_successor;
drop function if exists jobq.put_shard;
drop function if exists jobq.put_epoch;
drop function if exists jobq_internal.list_shards;
drop function if exists jobq_internal.list_router_statements;
drop function if exists jobq_internal.list_moved;
drop function if exists jobq_internal.list_leftovers;
drop function if exists jobq_internal.list_epochs;
drop function if exists jobq_internal.list_declarations;
drop function if exists jobq_internal.confirm_jobs;
drop function if exists jobq.choose_shard;
drop function if exists jobq_private.router_place;
drop function if exists jobq_private.router_function;
drop function if exists jobq_private.router_calls;
drop function if exists jobq_private.router_body;
drop function if exists jobq_private.router_answer;
drop view if exists jobq_private.routed_function;
drop function if exists jobq_private.become_shard;

commit;
