-- Revert jobq:api/queue_stats from pg
begin;
set local role jobq_owner;

drop function if exists jobq.queue_stats;

commit;
