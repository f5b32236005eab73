-- Purpose: record changes of definitions in the audit.

create or replace trigger definition_audit
after insert or update on jobq_private.definition
for each row execute function jobq_private.audit_change('put', 'name');

create or replace trigger definition_end_audit
after delete on jobq_private.definition
for each row execute function jobq_private.audit_change('delete', 'name');

create or replace trigger endpoint_audit
after update on jobq_private.endpoint
for each row when (new.version is distinct from old.version)
execute function jobq_private.audit_change('put_endpoint', 'endpoint');

create or replace trigger endpoint_end_audit
after delete on jobq_private.endpoint
for each row execute function jobq_private.audit_change('delete_endpoint', 'endpoint');
