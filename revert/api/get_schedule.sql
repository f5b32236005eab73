-- Revert jobq:api/get_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.get_schedule;

commit;
