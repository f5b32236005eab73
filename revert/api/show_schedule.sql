-- Revert jobq:api/show_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.show_schedule;

commit;
