-- Verify jobq:table/audit on pg
select audit_id, acted_at, actor, application, action, subject, reason
from jobq_private.audit where false;
