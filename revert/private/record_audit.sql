-- Revert jobq:private/record_audit from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.record_audit;

commit;
