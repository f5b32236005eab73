-- Revert jobq:api/put_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_queue;

commit;
