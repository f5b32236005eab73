-- Revert jobq:api/create_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.create_schedule;

commit;
