-- Revert jobq:private/execution_status from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.execution_status;

commit;
