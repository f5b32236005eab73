-- Purpose: the schedules that can fire, each with its time: the next slot, or the retry
-- after a failure.
-- Invariant: reads only, through schedule_due_idx, also when rows are locked.
create or replace view jobq_private.due_schedule as
select s.schedule_id, greatest(s.next_run_at, s.retry_at) as due_at
from jobq_private.schedule as s
where s.status = 'active' and s.next_run_at is not null;
