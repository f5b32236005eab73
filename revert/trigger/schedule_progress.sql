-- Revert jobq:trigger/schedule_progress from pg
begin;
set local role jobq_owner;

drop trigger if exists schedule_progress on jobq_private.schedule;

commit;
