-- Revert jobq:api/schedule_status from pg
begin;
set local role jobq_owner;

drop function if exists jobq.schedule_status;

commit;
