-- Revert jobq:api/complete from pg
begin;
set local role jobq_owner;

drop function if exists jobq.complete;

commit;
