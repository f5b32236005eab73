-- Purpose: Lists the limits of single concurrency keys, with how many jobs of each run.
-- Invariant: reads only. Raises: nothing.
-- Argument queue: only of this queue; null means all.
-- Column updated_at: when the limit was set.
-- Returns: a row for each limit.
-- Example: select * from jobq_internal.list_limits('mail');
create or replace function jobq_internal.list_limits(queue text default null)
returns table (
    queue text,
    concurrency_key text,
    max_running integer,
    rate_limit integer, rate_period interval, rate_burst integer,
    running bigint, updated_at timestamptz
)
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
    select
        l.queue, l.concurrency_key, l.max_running, l.rate_limit, l.rate_period,
        l.rate_burst, cardinality(r.slots)::bigint, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral jobq_private.used_slots(
        jobq_private.limit_id(l.queue, null, l.concurrency_key), l.queue, null, l.concurrency_key
    ) as r
    where (list_limits.queue is null or l.queue = list_limits.queue)
    and num_nonnulls(l.max_running, l.rate_limit) > 0
    order by l.queue, l.concurrency_key
$$;
grant execute on function jobq_internal.list_limits to jobq_operator, jobq_reader;
