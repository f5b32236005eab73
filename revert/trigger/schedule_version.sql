-- Revert jobq:trigger/schedule_version from pg
begin;
set local role jobq_owner;

drop trigger if exists schedule_version on jobq_private.schedule;
drop function if exists jobq_private.refuse_schedule_change;

commit;
