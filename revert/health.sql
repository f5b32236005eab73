-- Revert jobq:health from pg
-- Made by sql/snapshot.py from sql/health/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.replica_lag;
drop function if exists jobq.ready;
drop function if exists jobq.queue_stats;
drop function if exists jobq.metrics;
drop function if exists jobq.maintain;
drop function if exists jobq.health;
drop function if exists jobq_private.widen_history;
drop function if exists jobq_private.waiting_counts;
drop function if exists jobq_private.upkeep;
drop function if exists jobq_private.setting_health;
drop function if exists jobq_private.server_health;
drop function if exists jobq_private.roll_up_minutes;
drop function if exists jobq_private.roll_up;
drop function if exists jobq_private.queue_health;
drop view if exists jobq_private.unserved_queue;
drop view if exists jobq_private.waiting_queue;
drop view if exists jobq_private.unknown_kind;
drop function if exists jobq_private.prune;
drop function if exists jobq_private.multixact_members;
drop function if exists jobq_private.look_waiting;
drop function if exists jobq_private.listed;
drop function if exists jobq_private.count_waiting;
drop function if exists jobq_private.client_health;

commit;
