-- Purpose: the queues that are declared, and what each says; null where the default speaks.
-- Invariant: reads only; queue_stats() tells how each stands. Raises: nothing.
-- Column pause_reason: why it is paused, as the caller said.
-- Column updated_at: when it was declared, paused or resumed.
-- Returns: a row for each queue, by name.
-- Example: select queue, max_depth from jobq.list_queues();
create or replace function jobq.list_queues()
returns table (
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    max_depth integer,
    key_max_running integer,
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
        q.max_depth, q.key_max_running, q.paused_at, q.pause_reason, q.updated_at
    from jobq_private.queue as q
    order by q.queue
$$;

revoke all on function jobq.list_queues from public;
grant execute on function jobq.list_queues to jobq_operator, jobq_reader;

comment on function jobq.list_queues is
'Lists the queues that are declared, with what each says.';
