-- Purpose: the numbers of jobs of each queue that has jobs, is declared, or has a worker.
-- Invariant: counts running, blocked and dead jobs up to `most` each over all queues,
-- dead ones from the newest; null counts all. goes_on names the numbers that may be
-- larger. Waiting jobs and ends_at are those of waiting_counts().
create or replace function jobq_private.queue_figures(
    most integer default null, first text default null, max_queues integer default null
)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, running bigint, blocked bigint,
    dead bigint, oldest timestamptz, goes_on text[], ends_at integer
)
language sql stable as $$
    with waiting as materialized (
        select w.* from jobq_private.waiting_counts(coalesce(most, 10000), first, max_queues) as w
    ),
    counted as materialized (
        select
            c.queue,
            coalesce(sum(c.jobs) filter (where c.state = 'running'), 0)::bigint as running,
            coalesce(sum(c.jobs) filter (where c.state = 'blocked'), 0)::bigint as blocked,
            coalesce(sum(c.jobs) filter (where c.state = 'dead'), 0)::bigint as dead,
            array_agg(c.state order by c.state desc) filter (where c.is_cut) as goes_on
        from jobq_private.count_states(most) as c
        group by c.queue
    )
    select
        n.queue, coalesce(w.queued, 0), coalesce(w.scheduled, 0), coalesce(w.retrying, 0),
        coalesce(c.running, 0), coalesce(c.blocked, 0), coalesce(c.dead, 0), w.oldest,
        case when w.is_exact is false then '{queued,scheduled,retrying}' else '{}'::text[] end
            || coalesce(c.goes_on, '{}'),
        coalesce(w.ends_at, most)
    from (
        select w.queue from waiting as w
        union select c.queue from counted as c
        union select q.queue from jobq_private.queue as q
        union
        select q.queue
        from jobq_private.worker as k
        cross join lateral unnest(k.queues) as q (queue)
        where right(q.queue, 1) <> '*'
    ) as n
    left join waiting as w on w.queue = n.queue
    left join counted as c on c.queue = n.queue
    where first is null or n.queue >= first
    order by n.queue
    limit max_queues
$$;
