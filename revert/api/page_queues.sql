-- Revert jobq:api/page_queues from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_queues;

commit;
