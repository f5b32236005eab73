-- Revert jobq:api/begin_wait from pg
begin;
set local role jobq_owner;

drop function if exists jobq.begin_wait;

commit;
