-- Revert jobq:api/heartbeat from pg
begin;
set local role jobq_owner;

drop function if exists jobq.heartbeat;

commit;
