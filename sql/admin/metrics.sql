-- Purpose: Returns metrics for Prometheus: backlog, dead jobs, rates and latency.
-- Invariant: bounded. The count of waiting jobs in long queues may be a minute old;
-- dead jobs are read by their index, and the newest few thousand ids. Rates cover the
-- last minute; latency and failures the last 1,000 jobs that ended within five minutes;
-- without data, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, blocked_jobs, expired_leases,
-- oldest_runnable_seconds, waiting_keys, closed_keys, budget_amount, budget_spent, dlq_size,
-- jobs_enqueued, jobs_succeeded, jobs_dead, jobs_cancelled or attempts_failed, which count up
-- from the first minute on, lost_attempts, enqueue_qps, job_latency_p95_seconds or fail_rate.
-- Column queue: null for metrics of all queues.
-- Column value: the value.
-- Example: select * from jobq.metrics();
create or replace function jobq.metrics()
returns table (name text, queue text, value double precision) language sql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
    select m.name, f.queue, m.value::double precision
    from jobq_private.queue_figures() as f
    left join jobq_private.key_counts() as l on l.queue = f.queue
    left join (
        select j.queue, count(*) as jobs from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < clock_timestamp() group by 1
    ) as e on e.queue = f.queue
    cross join lateral (
        select f.queued + f.scheduled + f.retrying as waiting,
            f.queued + f.scheduled + f.retrying + f.running > 0 as is_live
    ) as s
    cross join lateral (
        values
        ('queue_backlog', s.waiting, s.is_live),
        ('running_jobs', f.running, s.is_live),
        ('expired_leases', coalesce(e.jobs, 0), s.is_live),
        ('oldest_runnable_seconds',
            coalesce(extract(epoch from clock_timestamp() - f.oldest), 0), s.is_live),
        ('blocked_jobs', f.blocked, f.blocked > 0),
        ('waiting_keys', l.waiting_keys, l.waiting_keys is not null),
        ('closed_keys', l.closed_keys, l.waiting_keys is not null),
        ('dlq_size', f.dead, f.dead > 0)
    ) as m (name, value, is_shown)
    where m.is_shown
    union all
    select m.name, b.scope, m.value::double precision
    from jobq_internal.list_budgets('queue', max_keys => 0) as b
    cross join lateral (
        values ('budget_amount', b.amount), ('budget_spent', b.spent)
    ) as m (name, value)
    where b.concurrency_key is null and not b.each_key
    union all
    select m.name, t.queue, m.value::double precision
    from jobq_private.total as t
    cross join lateral (
        values
        ('jobs_enqueued', t.enqueued), ('jobs_succeeded', t.succeeded),
        ('jobs_dead', t.dead), ('jobs_cancelled', t.cancelled), ('attempts_failed', t.failed)
    ) as m (name, value)
    union all
    select r.name, null, r.value from jobq_private.recent_rates() as r
$$;
grant execute on function jobq.metrics to jobq_operator, jobq_reader;
