-- Revert jobq:api/end_wait from pg
begin;
set local role jobq_owner;

drop function if exists jobq.end_wait;

commit;
