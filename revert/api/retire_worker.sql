-- Revert jobq:api/retire_worker from pg
begin;
set local role jobq_owner;

drop function if exists jobq.retire_worker;

commit;
