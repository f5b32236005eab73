-- Purpose: The declared kinds and their settings.
-- Invariant: null if the queue or the default applies. Paused kinds that are not
-- declared are listed too; * stands for every job.
-- Column queue: the default queue of its jobs.
-- Column dedup_key: path of the dedup key in the payload, or several.
-- Column dead_letter_kind: kind of the job that is enqueued when a job dies.
-- Column concurrency_key: path of the concurrency key in the payload.
-- Column cost: path of the cost in the payload.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column version: version of the declaring program; null if it has none.
create or replace view jobq.kind as
select
    coalesce(k.kind, p.kind) as kind, k.queue, k.priority::integer as priority, k.max_attempts,
    k.timeout, k.lease, k.retry_preset, k.retry_strategy, k.retry_initial_delay,
    k.retry_max_delay, k.retry_jitter, k.dedup, k.dedup_period, k.dedup_max_wait,
    k.reuse_key_after_failure, k.concurrency_key, k.max_running, k.rate_limit, k.rate_period,
    k.rate_burst, k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
    k.ordered, k.on_dead, k.keep[1] as keep_succeeded, k.keep[2] as keep_dead,
    k.keep[3] as keep_cancelled, k.run, k.retry_on,
    exists (select from jobq_private.endpoint as e where e.endpoint = k.kind) as is_endpoint,
    coalesce(k.json_schema, k.payload_schema) as payload_schema, k.version,
    coalesce(k.updated_at, p.paused_at) as updated_at, k.cost, p.paused_at, p.pause_reason,
    k.dedup_key, k.dead_letter_kind
from jobq_private.kind as k
full join jobq_private.paused_kind as p on p.kind = k.kind;

grant select on jobq.kind to jobq_reader;
