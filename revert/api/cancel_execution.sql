-- Revert jobq:api/cancel_execution from pg
begin;
set local role jobq_owner;

drop function if exists jobq.cancel_execution;

commit;
