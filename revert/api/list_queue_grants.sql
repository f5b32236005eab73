-- Revert jobq:api/list_queue_grants from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_queue_grants;

commit;
