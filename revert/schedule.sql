-- Revert jobq:schedule from pg
-- Made by sql/snapshot.py from sql/schedule/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists schedule_progress on jobq_private.schedule;
drop trigger if exists schedule_version on jobq_private.schedule;
drop function if exists jobq.update_schedule;
drop function if exists jobq.tick_in;
drop function if exists jobq.tick;
drop function if exists jobq.schedule_status;
drop function if exists jobq.run_schedule;
drop function if exists jobq.retire_schedule;
drop function if exists jobq.resume_schedule;
drop function if exists jobq.preview_schedule;
drop function if exists jobq.pause_schedule;
drop function if exists jobq.list_schedules;
drop function if exists jobq.list_schedule_versions;
drop function if exists jobq.get_schedule;
drop view if exists jobq.schedule;
drop function if exists jobq.create_schedule;
drop function if exists jobq.backfill_schedule;
drop function if exists jobq_private.schedule_succeed;
drop function if exists jobq_private.schedule_store;
drop function if exists jobq_private.schedule_statistics;
drop function if exists jobq_private.schedule_slots;
drop function if exists jobq_private.schedule_refuse;
drop function if exists jobq_private.refuse_schedule_change;
drop function if exists jobq_private.schedule_last_execution;
drop function if exists jobq_private.schedule_last;
drop function if exists jobq_private.schedule_hold;
drop function if exists jobq_private.schedule_follow;
drop function if exists jobq_private.schedule_first;
drop function if exists jobq_private.schedule_next;
drop function if exists jobq_private.schedule_fire;
drop function if exists jobq_private.schedule_executions;
drop function if exists jobq_private.schedule_document;
drop function if exists jobq_private.schedule_definition;
drop function if exists jobq_private.schedule_declare;
drop function if exists jobq_private.schedule_check;
drop function if exists jobq_private.graph_document;
drop function if exists jobq_private.fire_each;
drop function if exists jobq_private.fire_due;
drop function if exists jobq_private.schedule_advance;
drop function if exists jobq_private.check_backfill;
drop function if exists jobq_private.backfill_slots;
drop function if exists jobq_private.schedule_find;

commit;
