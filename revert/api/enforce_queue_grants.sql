-- Revert jobq:api/enforce_queue_grants from pg
begin;
set local role jobq_owner;

drop function if exists jobq.enforce_queue_grants;

commit;
