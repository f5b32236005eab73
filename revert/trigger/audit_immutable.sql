-- Revert jobq:trigger/audit_immutable from pg
begin;
set local role jobq_owner;

drop trigger if exists audit_immutable on jobq_private.audit;
drop function if exists jobq_private.guard_audit;

commit;
