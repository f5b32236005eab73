-- Revert jobq:api/update_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.update_schedule;

commit;
