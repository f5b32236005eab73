-- Revert jobq:api/wait from pg
begin;
set local role jobq_owner;

drop function if exists jobq.wait;

commit;
