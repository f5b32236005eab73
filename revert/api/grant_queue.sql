-- Revert jobq:api/grant_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.grant_queue;

commit;
