-- Purpose: Returns for each queue the numbers of waiting, running, retrying and dead
-- jobs, and the longest wait.
-- Invariant: reads at most some 50,000 waiting jobs, the running ones, the dead ones, and the
-- archive's last minute. oldest_runnable is the longest time that a job has been runnable.
-- Raises: nothing.
-- Column queued: number of runnable jobs.
-- Column scheduled: number of jobs that wait for their run_at.
-- Column running: how many run.
-- Column retrying: number of jobs that wait for a retry.
-- Column dead: number of dead jobs.
-- Column oldest_runnable: the longest wait of a runnable job; null if none waits.
-- Column waiting_keys: how many concurrency keys have work, by priority.
-- Column closed_keys: how many of these can start no job now: at a limit, held, or
-- without a due job.
-- Column is_exact: whether queued, scheduled and retrying are current. If more than
-- 10,000 jobs wait in a queue (fewer with many queues), they are the last count of
-- maintain(), about a minute old; before the first count, a lower bound.
-- Column blocked: number of blocked jobs.
-- Example: select * from jobq.queue_stats();
create or replace function jobq.queue_stats()
returns table (
    queue text,
    queued bigint,
    scheduled bigint,
    running bigint,
    retrying bigint,
    dead bigint,
    oldest_runnable interval,
    finished_last_minute bigint,
    is_paused boolean,
    waiting_keys bigint,
    closed_keys bigint,
    is_exact boolean,
    blocked bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select
        n.queue, coalesce(f.queued, 0), coalesce(f.scheduled, 0), coalesce(f.running, 0),
        coalesce(f.retrying, 0), coalesce(f.dead, 0),
        case when f.oldest is not null then greatest(now() - f.oldest, interval '0') end,
        coalesce(r.finished, 0), q.paused_at is not null
            or exists (select from jobq_private.paused_kind as p where p.kind = '*'),
        coalesce(k.waiting_keys, 0), coalesce(k.closed_keys, 0),
        coalesce(not f.goes_on && '{queued}', true), coalesce(f.blocked, 0)
    from jobq_private.queue_figures() as f
    full join (
        select a.queue, count(*) as finished
        from jobq_private.job_archive as a
        where a.finished_at > now() - interval '1 min'
        group by a.queue
    ) as r on r.queue = f.queue
    cross join lateral (select coalesce(f.queue, r.queue) as queue) as n
    left join jobq_private.key_counts() as k on k.queue = n.queue
    left join jobq_private.queue as q on q.queue = n.queue
    where f.queued + f.scheduled + f.running + f.retrying + f.dead + f.blocked > 0
    or r.finished > 0
    or q.queue is not null
    order by n.queue
$$;
grant execute on function jobq.queue_stats to jobq_operator, jobq_reader;
