-- Verify jobq:audit_tables on pg
begin;

select audit_id, acted_at, actor, application, action, subject, reason
from jobq_private.audit where false;

rollback;
