-- Purpose: The declared queues and their settings.
-- Invariant: null if the default applies. queue_stats() has their figures.
create or replace view jobq.queue as
select
    q.queue, q.priority::integer as priority, q.max_attempts, q.timeout, q.lease,
    q.retry_preset, q.max_depth, q.max_running, q.rate_limit, q.rate_period, q.rate_burst,
    q.key_max_running, q.key_rate_limit, q.key_rate_period, q.key_rate_burst, q.ordered,
    q.on_dead, q.paused_at, q.pause_reason, q.updated_at
from jobq_private.queue as q;

grant select on jobq.queue to jobq_reader;
