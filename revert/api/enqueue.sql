-- Revert jobq:api/enqueue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.enqueue;

commit;
