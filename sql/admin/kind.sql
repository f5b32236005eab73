-- Purpose: The declared kinds and their settings.
-- Invariant: null if the queue or the default applies. Paused kinds that are not
-- declared are listed too; * stands for every job.
-- Column queue: the default queue of its jobs.
-- Column dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Column dedup_period: how long debounce waits for another call, or throttle creates no other
-- job.
-- Column dedup_max_wait: maximum total delay by debounce.
-- Column dedup_key: path of the dedup key in the payload, or several.
-- Column dead_letter_kind: kind of the job that is enqueued when a job dies.
-- Column concurrency_key: path of the concurrency key in the payload.
-- Column cost: path of the cost in the payload.
-- Column key_max_running: how many of its jobs of each concurrency key run at once, in all queues.
-- Column key_rate_limit: how many of its jobs of each key start in each key_rate_period, in all
-- queues.
-- Column ordered: whether its jobs of each key run one at a time, in order.
-- Column on_dead: what happens to the key of a dead job of an ordered kind: continue or hold.
-- Column keep_succeeded: how long succeeded jobs are kept; 0 keeps nothing.
-- Column keep_dead: how long dead jobs are kept.
-- Column keep_cancelled: how long cancelled jobs are kept.
-- Column run: the function that work() calls; null if workers have a handler.
-- Column retry_on: errors of run after which a job is retried, by SQLSTATE or class.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column payload_schema: the JSON Schema of payloads.
-- Column version: version of the declaring program; null if it has none.
-- Column updated_at: when it was declared.
-- Column paused_at: when it was paused; null if it is not paused.
-- Column pause_reason: reason given by the caller.
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
