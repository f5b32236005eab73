-- Revert jobq:private/schedule_fire from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_fire;

commit;
