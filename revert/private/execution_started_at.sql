-- Revert jobq:private/execution_started_at from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.execution_started_at;

commit;
