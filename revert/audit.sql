-- Revert jobq:audit from pg
-- Made by sql/snapshot.py from sql/audit/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists audit_immutable on jobq_private.audit;
drop trigger if exists queue_grant_end_audit on jobq_private.queue_grant;
drop trigger if exists queue_grant_audit on jobq_private.queue_grant;
drop trigger if exists payload_spec_end_audit on jobq_private.payload_spec;
drop trigger if exists payload_spec_audit on jobq_private.payload_spec;
drop trigger if exists config_end_audit on jobq_private.config;
drop trigger if exists config_audit on jobq_private.config;
drop trigger if exists endpoint_end_audit on jobq_private.endpoint;
drop trigger if exists endpoint_audit on jobq_private.endpoint;
drop trigger if exists secret_end_audit on jobq_private.secret;
drop trigger if exists secret_audit on jobq_private.secret;
drop trigger if exists api_key_audit on jobq_private.api_key;
drop trigger if exists api_key_birth_audit on jobq_private.api_key;
drop trigger if exists queue_birth_audit on jobq_private.queue;
drop trigger if exists queue_audit on jobq_private.queue;
drop trigger if exists archive_audit on jobq_private.job_archive;
drop view if exists jobq.audit;
drop function if exists jobq.act_for;
drop function if exists jobq_private.record_audit;
drop function if exists jobq_private.audit_settings;
drop function if exists jobq_private.guard_audit;
drop function if exists jobq_private.audit_change;

commit;
