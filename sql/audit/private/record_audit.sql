-- Purpose: record what somebody does to a job, a queue, a key or a secret, in the same
-- transaction. The actor is the session's user, whom no caller can forge.
create or replace function jobq_private.record_audit(
    action text, subject text, reason text default null
)
returns void language sql as $$
    insert into jobq_private.audit (action, subject, reason)
    values (record_audit.action, record_audit.subject, record_audit.reason)
$$;
