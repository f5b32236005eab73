-- Purpose: store the history and latencies of the buckets of a width that end between two
-- times: minutes from the jobs, wider ones from narrow ones. Returns how many rows of minutes.
-- Invariant: for each bucket at most 20 pairs of queue and kind, the rest as (other).
-- Minutes are added to the totals of some 500 queues, which only grow.
create or replace function jobq_private.roll_up_buckets(
    minutes integer, narrow integer, since timestamptz, until timestamptz
)
returns bigint language sql as $$
    with events as materialized (
        select e.* from jobq_private.bucket_events(minutes, narrow, since, until) as e
    ),
    ranked as (
        select e.bucket, e.queue, e.kind,
            coalesce(sum(e.jobs) filter (where e.event = 'enqueued'), 0) as enqueued,
            coalesce(sum(e.jobs) filter (where e.event = 'succeeded'), 0) as succeeded,
            coalesce(sum(e.jobs) filter (where e.event = 'failed'), 0) as failed,
            coalesce(sum(e.jobs) filter (where e.event = 'dead'), 0) as dead,
            coalesce(sum(e.jobs) filter (where e.event = 'cancelled'), 0) as cancelled,
            row_number() over (
                partition by e.bucket
                order by sum(e.jobs) filter (where e.event in ('enqueued', 'succeeded')) desc nulls last,
                    e.queue, e.kind
            ) as place
        from events as e
        where e.queue is not null
        group by e.bucket, e.queue, e.kind
    ),
    stored as (
        insert into jobq_private.history (
            minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
        )
        select roll_up_buckets.minutes, r.bucket, case when r.place <= 20 then r.queue else '(other)' end,
            case when r.place <= 20 then r.kind else '(other)' end,
            sum(r.enqueued), sum(r.succeeded), sum(r.failed), sum(r.dead), sum(r.cancelled)
        from ranked as r
        group by 2, 3, 4
        on conflict on constraint history_pkey do nothing
        returning queue, enqueued, succeeded, failed, dead, cancelled
    ),
    added as (
        insert into jobq_private.total as t (queue, enqueued, succeeded, failed, dead, cancelled)
        select
            case
                when (select count(*) from jobq_private.total) < 500
                or exists (select from jobq_private.total as o where o.queue = s.queue)
                then s.queue
                else '(other)'
            end,
            sum(s.enqueued), sum(s.succeeded), sum(s.failed), sum(s.dead), sum(s.cancelled)
        from stored as s
        where roll_up_buckets.minutes = 1
        group by 1
        order by 1
        on conflict on constraint total_pkey do update
        set
            enqueued = t.enqueued + excluded.enqueued,
            succeeded = t.succeeded + excluded.succeeded,
            failed = t.failed + excluded.failed,
            dead = t.dead + excluded.dead,
            cancelled = t.cancelled + excluded.cancelled
    ),
    timed as (
        insert into jobq_private.latency (minutes, bucket, counts)
        select roll_up_buckets.minutes, m.bucket, array_agg(coalesce(c.jobs, 0) order by k)
        from (select distinct e.bucket from events as e where e.class is not null) as m
        cross join generate_series(0, 49) as k
        left join (
            select e.bucket, e.class, sum(e.jobs) as jobs
            from events as e
            where e.class is not null
            group by e.bucket, e.class
        ) as c on c.bucket = m.bucket and c.class = k
        group by m.bucket
        on conflict on constraint latency_pkey do nothing
    )
    select count(*) from stored where roll_up_buckets.minutes = 1
$$;
