-- Revert jobq:api/ready from pg
begin;
set local role jobq_owner;

drop function if exists jobq.ready;

commit;
