-- Purpose: queues whose jobs have been due for a minute while no live worker serves them.
-- Invariant: reads only; a probe of job_ready_idx for each queue and priority in use.
-- Raises: nothing.
create or replace view jobq_private.unserved_queue as
select u.queue
from jobq_private.waiting_queue as u
where not exists (
    select from jobq_private.worker as w
    where u.queue = any(w.queues) and w.seen_at > now() - interval '1 min'
)
and jobq.next_due(array[u.queue]) < now() - interval '1 min';

revoke all on table jobq_private.unserved_queue from public;

comment on view jobq_private.unserved_queue is
'Queues whose jobs have been due for a minute while no live worker serves them.';
