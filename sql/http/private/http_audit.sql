-- Purpose: record changes of API keys in the audit.

create or replace trigger api_key_birth_audit
after insert on jobq_private.api_key
for each row execute function jobq_private.audit_change('create_api_key', 'api_key');

create or replace trigger api_key_audit
after update on jobq_private.api_key
for each row when (new.last_used_at is not distinct from old.last_used_at)
execute function jobq_private.audit_change('revoke_api_key', 'api_key');
