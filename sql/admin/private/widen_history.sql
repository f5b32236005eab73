-- Purpose: build wider buckets of the history from all completed narrow ones between
-- two times.
-- Invariant: at most 20 pairs per bucket, the rest as (other).
create or replace function jobq_private.widen_history(
    narrow integer, wide integer, since timestamptz, until timestamptz
)
returns void
language plpgsql
as $$
declare
    _width constant interval := wide * interval '1 min';
    _from constant timestamptz := date_bin(_width, since, '2000-01-01 UTC');
    _to constant timestamptz := date_bin(_width, until, '2000-01-01 UTC');
begin
    insert into jobq_private.history (
        minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
    )
    select wide, r.bucket, case when r.place <= 20 then r.queue else '(other)' end,
        case when r.place <= 20 then r.kind else '(other)' end,
        sum(r.enqueued), sum(r.succeeded), sum(r.failed), sum(r.dead), sum(r.cancelled)
    from (
        select date_bin(_width, h.bucket, '2000-01-01 UTC') as bucket, h.queue, h.kind,
            sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
            sum(h.failed) as failed, sum(h.dead) as dead, sum(h.cancelled) as cancelled,
            row_number() over (
                partition by date_bin(_width, h.bucket, '2000-01-01 UTC')
                order by sum(h.enqueued + h.succeeded) desc, h.queue, h.kind
            ) as place
        from jobq_private.history as h
        where h.minutes = narrow and h.bucket >= _from and h.bucket < _to
        group by 1, 2, 3
    ) as r
    group by 2, 3, 4
    on conflict on constraint history_pkey do nothing;

    insert into jobq_private.latency (minutes, bucket, counts)
    select wide, s.bucket, array_agg(s.jobs order by s.n)
    from (
        select date_bin(_width, l.bucket, '2000-01-01 UTC') as bucket, c.n,
            sum(c.jobs) as jobs
        from jobq_private.latency as l
        cross join unnest(l.counts) with ordinality as c (jobs, n)
        where l.minutes = narrow and l.bucket >= _from and l.bucket < _to
        group by 1, 2
    ) as s
    group by s.bucket
    on conflict on constraint latency_pkey do nothing;
end
$$;
