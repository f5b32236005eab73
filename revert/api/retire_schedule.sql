-- Revert jobq:api/retire_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.retire_schedule;

commit;
