-- Revert jobq:api/page_schedules from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_schedules;

commit;
