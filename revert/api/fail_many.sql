-- Revert jobq:api/fail_many from pg
begin;
set local role jobq_owner;

drop function if exists jobq.fail_many;

commit;
