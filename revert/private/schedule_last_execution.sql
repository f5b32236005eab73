-- Revert jobq:private/schedule_last_execution from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_last_execution;

commit;
