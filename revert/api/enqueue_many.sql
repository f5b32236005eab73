-- Revert jobq:api/enqueue_many from pg
begin;
set local role jobq_owner;

drop function if exists jobq.enqueue_many;

commit;
