-- Purpose: record changes of secrets and definitions in the audit.

create or replace trigger secret_audit
after insert or update on jobq_private.secret
for each row execute function jobq_private.audit_change('put_secret', 'secret');

create or replace trigger secret_end_audit
after delete on jobq_private.secret
for each row execute function jobq_private.audit_change('delete_secret', 'secret');

create or replace trigger endpoint_audit
after update on jobq_private.endpoint
for each row when (new.version is distinct from old.version)
execute function jobq_private.audit_change('put_endpoint', 'endpoint');

create or replace trigger endpoint_end_audit
after delete on jobq_private.endpoint
for each row execute function jobq_private.audit_change('delete_endpoint', 'endpoint');

create or replace trigger config_audit
after insert or update on jobq_private.config
for each row execute function jobq_private.audit_change('put_config', 'config');

create or replace trigger config_end_audit
after delete on jobq_private.config
for each row execute function jobq_private.audit_change('delete_config', 'config');

create or replace trigger payload_spec_audit
after insert or update on jobq_private.payload_spec
for each row execute function jobq_private.audit_change('put_payload_spec', 'payload_spec');

create or replace trigger payload_spec_end_audit
after delete on jobq_private.payload_spec
for each row execute function jobq_private.audit_change('delete_payload_spec', 'payload_spec');
