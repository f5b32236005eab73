-- Revert jobq:api/delete_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_queue;

commit;
