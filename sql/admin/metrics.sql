-- Purpose: the figures for Prometheus; queue is null for totals.
-- Invariant: bounded. The count of waiting jobs in long queues may be a minute old;
-- dead jobs are read by their index, and the newest few thousand ids. Rates cover the
-- last minute; latency and failures the last 1,000 jobs that ended within five minutes;
-- without data, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, blocked_jobs, expired_leases, oldest_runnable_seconds, lanes,
-- closed_lanes, budget_amount, budget_spent, dlq_size, jobs_enqueued, jobs_succeeded, jobs_dead, jobs_cancelled or
-- attempts_failed, which count up from the first minute on, lost_attempts, enqueue_qps,
-- job_latency_p95_seconds or fail_rate.
-- Column queue: null for metrics of all queues.
-- Column value: the value.
-- Example: select * from jobq.metrics();
create or replace function jobq.metrics()
returns table (name text, queue text, value double precision)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return query
    select m.name, l.queue, m.value
    from (
        select
            coalesce(w.queue, r.queue) as queue,
            coalesce(w.queued + w.scheduled + w.retrying, 0) as waiting,
            coalesce(r.running, 0) as running,
            coalesce(r.expired, 0) as expired,
            coalesce(extract(epoch from _now - w.oldest), 0) as oldest
        from jobq_private.waiting_counts() as w
        full join (
            select
                j.queue, count(*) as running,
                count(*) filter (where j.lease_expires_at < _now) as expired
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ) as l
    cross join lateral (
        values
        ('queue_backlog', l.waiting::double precision),
        ('running_jobs', l.running),
        ('expired_leases', l.expired),
        ('oldest_runnable_seconds', l.oldest)
    ) as m (name, value);

    return query
    select 'blocked_jobs', j.queue, count(*)::double precision
    from jobq_private.job as j
    where j.state = 'blocked'
    group by j.queue;

    return query
    select m.name, l.queue, m.value
    from jobq_private.lane_counts() as l
    cross join lateral (
        values ('lanes', l.lanes::double precision), ('closed_lanes', l.closed_lanes)
    ) as m (name, value);

    return query
    select m.name, b.scope, m.value
    from jobq_internal.list_budgets('queue', max_keys => 0) as b
    cross join lateral (
        values
        ('budget_amount', b.amount::double precision), ('budget_spent', b.spent::double precision)
    ) as m (name, value)
    where b.concurrency_key is null and not b.each_key;

    return query
    select 'dlq_size', a.queue, count(*)::double precision
    from jobq_private.job_archive as a
    where a.state = 'dead'
    group by a.queue;

    return query
    select m.name, t.queue, m.value::double precision
    from jobq_private.total as t
    cross join lateral (
        values
        ('jobs_enqueued', t.enqueued), ('jobs_succeeded', t.succeeded),
        ('jobs_dead', t.dead), ('jobs_cancelled', t.cancelled), ('attempts_failed', t.failed)
    ) as m (name, value);

    return query
    select r.name, null::text, r.value from jobq_private.recent_rates() as r;
end
$$;

grant execute on function jobq.metrics to jobq_operator, jobq_reader;

comment on function jobq.metrics is
'Returns metrics for Prometheus: backlog, dead jobs, rates and latency.';
