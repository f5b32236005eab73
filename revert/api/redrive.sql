-- Revert jobq:api/redrive from pg
begin;
set local role jobq_owner;

drop function if exists jobq.redrive;

commit;
