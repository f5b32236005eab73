-- Purpose: the declared queues and their settings; null if the default applies.
-- Invariant: reads only; queue_stats() has their figures. Raises: nothing.
-- Column ordered: whether the jobs of each concurrency key run one at a time, in order.
-- Column on_dead: what happens to the key of a dead job of an ordered queue: continue or hold.
-- Column pause_reason: reason given by the caller.
-- Column updated_at: when it was declared, paused or resumed.
-- Returns: a row for each queue, by name.
-- Example: select queue, max_depth from jobq_internal.list_queues();
create or replace function jobq_internal.list_queues()
returns table (
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    max_depth integer,
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
    paused_at timestamptz,
    pause_reason text,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        q.queue, q.priority::integer, q.max_attempts, q.timeout, q.lease, q.retry_preset,
        q.max_depth, q.max_running, q.rate_limit, q.rate_period, q.rate_burst,
        q.key_max_running, q.key_rate_limit, q.key_rate_period, q.key_rate_burst, q.ordered,
        q.on_dead, q.paused_at, q.pause_reason, q.updated_at
    from jobq_private.queue as q
    order by q.queue
$$;

grant execute on function jobq_internal.list_queues to jobq_operator, jobq_reader;

comment on function jobq_internal.list_queues is
'Lists the declared queues and their settings.';
