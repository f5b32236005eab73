-- Purpose: the kinds that are declared, and what each says; null where the queue or the
-- default speaks.
-- Invariant: reads only. Raises: nothing.
-- Column queue: the queue of its jobs where the call names none.
-- Column dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Column dedup_period: how long a job waits for another call (debounce), or how long a key makes no
-- other job (throttle).
-- Column dedup_max_wait: how long other calls may put a job off in all.
-- Column concurrency_key: the path in the payload at which each job's concurrency key stands.
-- Column key_max_running: how many of its jobs of each concurrency key run at once, in all queues.
-- Column key_rate_limit: how many of its jobs of each key start in each key_rate_period, in all
-- queues.
-- Column ordered: whether its jobs of each key run one at a time, in their order.
-- Column on_dead: whether a key goes on when a job of an ordered kind is dead: continue, or hold.
-- Column keep_succeeded: how long its jobs are kept that succeeded; 0 leaves no trace.
-- Column keep_dead: the same for dead jobs.
-- Column keep_cancelled: the same for cancelled jobs.
-- Column run: the function that work() calls for a job; null where workers have a handler.
-- Column retry_on: after which errors of run a job is tried again, by SQLSTATE or class.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column payload_schema: the JSON Schema that payloads must fit.
-- Column version: of the program that declared it; null where that says none.
-- Column updated_at: when it was declared.
-- Returns: a row for each kind, by name.
-- Example: select kind, queue, timeout from jobq.list_kinds();
create or replace function jobq.list_kinds()
returns table (
    kind text,
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision,
    dedup text,
    dedup_period interval,
    dedup_max_wait interval,
    reuse_key_after_failure boolean,
    concurrency_key text[],
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    key_max_running integer,
    key_rate_limit integer,
    key_rate_period interval,
    key_rate_burst integer,
    ordered boolean,
    on_dead text,
    keep_succeeded interval,
    keep_dead interval,
    keep_cancelled interval,
    run text,
    retry_on text[],
    is_endpoint boolean,
    payload_schema jsonb,
    version bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.kind, k.queue, k.priority::integer, k.max_attempts, k.timeout, k.lease, k.retry_preset,
        k.retry_strategy, k.retry_initial_delay, k.retry_max_delay, k.retry_jitter,
        k.dedup, k.dedup_period, k.dedup_max_wait, k.reuse_key_after_failure,
        k.concurrency_key, k.max_running, k.rate_limit, k.rate_period, k.rate_burst,
        k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
        k.ordered, k.on_dead, k.keep[1], k.keep[2], k.keep[3], k.run, k.retry_on,
        exists (select from jobq_private.endpoint as e where e.endpoint = k.kind),
        coalesce(k.json_schema, k.payload_schema), k.version, k.updated_at
    from jobq_private.kind as k
    order by k.kind
$$;

revoke all on function jobq.list_kinds from public;
grant execute on function jobq.list_kinds to jobq_operator, jobq_reader;

comment on function jobq.list_kinds is
'Lists the kinds that are declared, with what each says.';
