-- Purpose: count events between two minutes, by minute, queue and kind.
-- Invariant: reads ended jobs by time and created jobs by id, each once; for each
-- minute at most 20 pairs of queue and kind, the rest as (other). Adds to the totals of
-- some 500 queues, which only grow. Raises: nothing.
create or replace function jobq_private.roll_up_minutes(
    since timestamptz, until timestamptz
)
returns bigint
language plpgsql
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    -- Bounds of the minutes, as times and as ids, and of the latency buckets, in
    -- seconds.
    _times constant timestamptz[] := array(
        select t from generate_series(since, until, interval '1 min') as t
    );
    _ids constant uuid[] := array(
        select jobq_private.id_floor(t) from unnest(_times) as t
    );
    _classes constant double precision[] := array(
        select (power(2, k / 2.0) - 1) / 1000 from generate_series(1, 49) as k
    );
    _last constant integer := cardinality(_times);
    _rows bigint;
begin
    with ended as materialized (
        select
            width_bucket(a.finished_at, _times) as n, a.queue, a.kind, a.state,
            width_bucket(date_part('epoch', a.finished_at - case a.attempt
                when 1 then greatest(a.run_at, a.created_at) else a.created_at
            end), _classes) as class,
            width_bucket(a.job_id, _ids) as made,
            count(*) as jobs
        from jobq_private.job_archive as a
        where a.finished_at >= since and a.finished_at < until
        group by 1, 2, 3, 4, 5, 6
    ),
    counted as (
        select e.n, e.queue, e.kind, 0::bigint as enqueued,
            sum(e.jobs) filter (where e.state = 'succeeded') as succeeded,
            0::bigint as failed,
            sum(e.jobs) filter (where e.state = 'dead') as dead,
            sum(e.jobs) filter (where e.state = 'cancelled') as cancelled
        from ended as e
        group by 1, 2, 3
        union all
        select e.made, e.queue, e.kind, sum(e.jobs), 0, 0, 0, 0
        from ended as e
        where e.made between 1 and _last - 1
        group by 1, 2, 3
        union all
        select m.n, m.queue, m.kind, m.jobs, 0, 0, 0, 0
        from (
            select width_bucket(j.job_id, _ids) as n, j.queue, j.kind, count(*) as jobs
            from jobq_private.job as j
            where j.job_id >= _ids[1] and j.job_id < _ids[_last]
            group by 1, 2, 3
            union all
            select width_bucket(a.job_id, _ids), a.queue, a.kind, count(*)
            from jobq_private.job_archive as a
            where a.job_id >= _ids[1] and a.job_id < _ids[_last] and a.finished_at >= until
            group by 1, 2, 3
        ) as m
        union all
        select f.n, f.queue, f.kind, 0, 0, count(*), 0, 0
        from (
            select width_bucket(t.finished_at, _times) as n,
                coalesce(j.queue, a.queue) as queue, coalesce(j.kind, a.kind) as kind
            from jobq_private.attempt as t
            left join jobq_private.job as j on j.job_id = t.job_id
            left join lateral (
                select h.queue, h.kind
                from jobq_private.job_archive as h
                where j.job_id is null and h.job_id = t.job_id
                and h.finished_at >= t.finished_at
                limit 1
            ) as a on true
            where t.finished_at >= since and t.finished_at < until
            and t.state = 'retrying'
        ) as f
        where f.queue is not null
        group by 1, 2, 3
    ),
    ranked as (
        select c.n, c.queue, c.kind,
            sum(c.enqueued) as enqueued, sum(c.succeeded) as succeeded,
            sum(c.failed) as failed, sum(c.dead) as dead, sum(c.cancelled) as cancelled,
            row_number() over (
                partition by c.n
                order by sum(c.enqueued) + coalesce(sum(c.succeeded), 0) desc, c.queue, c.kind
            ) as place
        from counted as c
        group by c.n, c.queue, c.kind
    ),
    stored as (
        insert into jobq_private.history (
            minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
        )
        select 1, _times[r.n], p.queue, p.kind,
            sum(r.enqueued), coalesce(sum(r.succeeded), 0), sum(r.failed),
            coalesce(sum(r.dead), 0), coalesce(sum(r.cancelled), 0)
        from ranked as r
        cross join lateral (
            select case when r.place <= 20 then r.queue else '(other)' end as queue,
                case when r.place <= 20 then r.kind else '(other)' end as kind
        ) as p
        group by r.n, p.queue, p.kind
        on conflict on constraint history_pkey do nothing
        returning queue, enqueued, succeeded, failed, dead, cancelled
    ),
    added as (
        insert into jobq_private.total as t (
            queue, enqueued, succeeded, failed, dead, cancelled
        )
        select
            k.queue, sum(s.enqueued), sum(s.succeeded), sum(s.failed), sum(s.dead),
            sum(s.cancelled)
        from stored as s
        cross join lateral (
            select case
                when (select count(*) from jobq_private.total) < 500
                or exists (select from jobq_private.total as o where o.queue = s.queue)
                then s.queue
                else '(other)'
            end as queue
        ) as k
        group by k.queue
        order by k.queue
        on conflict on constraint total_pkey do update
        set
            enqueued = t.enqueued + excluded.enqueued,
            succeeded = t.succeeded + excluded.succeeded,
            failed = t.failed + excluded.failed,
            dead = t.dead + excluded.dead,
            cancelled = t.cancelled + excluded.cancelled
    ),
    classes as (
        select e.n, e.class, sum(e.jobs) as jobs
        from ended as e
        where e.state = 'succeeded'
        group by e.n, e.class
    ),
    timed as (
        insert into jobq_private.latency (minutes, bucket, counts)
        select 1, _times[m.n], array_agg(coalesce(c.jobs, 0) order by k)
        from (select distinct c.n from classes as c) as m
        cross join generate_series(0, 49) as k
        left join classes as c on c.n = m.n and c.class = k
        group by m.n
        on conflict on constraint latency_pkey do nothing
    )
    select count(*) into _rows from stored;
    return _rows;
end
$$;
