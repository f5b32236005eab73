-- Revert jobq:api/fail from pg
begin;
set local role jobq_owner;

drop function if exists jobq.fail;

commit;
