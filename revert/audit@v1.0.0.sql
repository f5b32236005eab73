-- Revert jobq:audit from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop trigger if exists audit_immutable on jobq_private.audit;
drop trigger if exists queue_birth_audit on jobq_private.queue;
drop trigger if exists queue_audit on jobq_private.queue;
drop function if exists jobq_private.audit_immutable;
drop function if exists jobq_private.audit_change;
drop view if exists jobq.audit;
drop function if exists jobq_private.record_audit;
drop function if exists jobq_private.audit_settings;

commit;
