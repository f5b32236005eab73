-- Revert jobq:api/list_schedules from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_schedules;

commit;
