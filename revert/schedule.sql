-- Revert jobq:schedule from pg
-- Made by sql/snapshot.py from sql/schedule/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists schedule_progress on jobq_private.schedule;
drop trigger if exists schedule_version on jobq_private.schedule;
drop function if exists jobq.update_schedule;
drop function if exists jobq.resume_schedule;
drop function if exists jobq_private.schedule_succeed;
drop function if exists jobq_private.schedule_store;
drop function if exists jobq_private.schedule_statistics;
drop function if exists jobq_private.schedule_next;
drop function if exists jobq_private.schedule_fire;
drop function if exists jobq_private.schedule_definition;
drop function if exists jobq_private.schedule_find;

commit;
