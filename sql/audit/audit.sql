-- Purpose: what operators have done, for operators.
-- Invariant: reads only; the table takes nothing but additions.
-- Column action: what was done: cancel, redrive, pause_queue, put_kind and more.
create or replace view jobq.audit as
select a.audit_id, a.acted_at, a.actor, a.application, a.action, a.subject, a.reason,
    a.acting_for
from jobq_private.audit as a;

grant select on jobq.audit to jobq_operator;

comment on view jobq.audit is
'Who cancelled or redrove jobs, paused or granted queues, or changed declarations, schedules, keys and secrets, when and why.';
