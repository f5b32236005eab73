-- Purpose: Who cancelled or redrove jobs, paused or granted queues, or changed
-- declarations, schedules, keys and secrets, when and why.
-- Invariant: reads only; the table accepts only inserts.
-- Column action: the action: cancel, redrive, pause_queue, put_kind and others.
create or replace view jobq.audit as
select a.audit_id, a.acted_at, a.actor, a.application, a.action, a.subject, a.reason,
    a.acting_for
from jobq_private.audit as a;

grant select on jobq.audit to jobq_operator;
