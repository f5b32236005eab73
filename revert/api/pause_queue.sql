-- Revert jobq:api/pause_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.pause_queue;

commit;
