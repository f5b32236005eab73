-- Revert jobq:api/complete_many from pg
begin;
set local role jobq_owner;

drop function if exists jobq.complete_many;

commit;
