-- Purpose: record changes of grants in the audit.

create or replace trigger queue_grant_audit
after insert on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'grant_queue', 'grantee', 'privilege', 'queue'
);

create or replace trigger queue_grant_end_audit
after delete on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'revoke_queue', 'grantee', 'privilege', 'queue'
);
