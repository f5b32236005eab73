-- Purpose: the schedules that fire by themselves, each with when: at its next slot, or when one that
-- could not fire is tried again.
-- Invariant: reads only; schedule_due_idx serves it, also under a lock of its rows. Raises: nothing.
create or replace view jobq_private.due_schedule as
select s.schedule_id, greatest(s.next_run_at, s.retry_at) as due_at
from jobq_private.schedule as s
where s.status = 'active' and s.next_run_at is not null;

comment on view jobq_private.due_schedule is
'The schedules that fire by themselves, each with when.';
