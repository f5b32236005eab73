-- Purpose: record an action on a job, a queue, a key or a secret.
-- Invariant: same transaction as the action, so both commit or neither. The actor is
-- session_user, which no caller can forge; the application is what the client reports.
-- Raises: nothing.
create or replace function jobq_private.record_audit(
    action text, subject text, reason text default null
)
returns void
language sql
as $$
    insert into jobq_private.audit (action, subject, reason)
    values (record_audit.action, record_audit.subject, record_audit.reason)
$$;
