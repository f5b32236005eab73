-- Purpose: one row for each queue that has jobs or is declared.
-- Invariant: reads at most some 50,000 waiting jobs, the running ones, the dead ones,
-- and the archive's last minute. oldest_runnable is the longest time that a job has
-- been runnable.
-- Raises: nothing.
-- Column queued: number of runnable jobs.
-- Column scheduled: number of jobs that wait for their run_at.
-- Column running: how many run.
-- Column retrying: number of jobs that wait for a retry.
-- Column dead: number of dead jobs.
-- Column oldest_runnable: the longest wait of a runnable job; null if none waits.
-- Column lanes: how many concurrency keys have work, by priority.
-- Column closed_lanes: how many of these can start no job now: at a limit, held, or
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
    lanes bigint,
    closed_lanes bigint,
    is_exact boolean,
    blocked bigint
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with live as (
        select
            coalesce(w.queue, r.queue) as queue, w.queued, w.scheduled, r.running,
            w.retrying, greatest(now() - w.oldest, interval '0') as oldest_runnable, w.is_exact
        from jobq_private.waiting_counts() as w
        full join (
            select j.queue, count(*) as running
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ),
    held as (
        select j.queue, count(*) as blocked
        from jobq_private.job as j
        where j.state = 'blocked'
        group by j.queue
    ),
    ended as (
        select a.queue, count(*) as dead
        from jobq_private.job_archive as a
        where a.state = 'dead'
        group by a.queue
    ),
    recent as (
        select a.queue, count(*) as finished
        from jobq_private.job_archive as a
        where a.finished_at > now() - interval '1 min'
        group by a.queue
    )
    select
        n.queue, coalesce(l.queued, 0), coalesce(l.scheduled, 0), coalesce(l.running, 0),
        coalesce(l.retrying, 0), coalesce(e.dead, 0), l.oldest_runnable,
        coalesce(r.finished, 0), coalesce(jobq_private.is_paused(n.queue), false),
        coalesce(k.lanes, 0), coalesce(k.closed_lanes, 0), coalesce(l.is_exact, true),
        coalesce(h.blocked, 0)
    from (
        select l.queue from live as l
        union select h.queue from held as h
        union select e.queue from ended as e
        union select r.queue from recent as r
        union select q.queue from jobq_private.queue as q
    ) as n
    left join live as l on l.queue = n.queue
    left join held as h on h.queue = n.queue
    left join ended as e on e.queue = n.queue
    left join recent as r on r.queue = n.queue
    left join jobq_private.lane_counts() as k on k.queue = n.queue
    order by n.queue
$$;

grant execute on function jobq.queue_stats to jobq_operator, jobq_reader;

comment on function jobq.queue_stats is
'Returns for each queue the numbers of waiting, running, retrying and dead jobs, and the longest wait.';
