-- Revert jobq:api/revoke_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.revoke_queue;

commit;
