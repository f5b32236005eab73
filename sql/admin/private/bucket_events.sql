-- Purpose: numbers of jobs that were created or ended, and of attempts that failed,
-- between two times, by bucket, queue and kind, for roll_up_buckets().
-- Invariant: without narrow buckets to read, reads ended jobs by time and created jobs by
-- id. class, only of succeeded jobs, is the bucket of the latency: from when the job could
-- first run, for later attempts from its creation. Narrow buckets have latencies without a queue.
create or replace function jobq_private.bucket_events(
    minutes integer, narrow integer, since timestamptz, until timestamptz
)
returns table (bucket timestamptz, queue text, kind text, event text, class integer, jobs bigint)
language plpgsql set jit = off set enable_seqscan = off set plan_cache_mode = force_custom_plan
as $$
declare
    -- Bounds of the minutes, as times and as ids, and of the latency buckets, in
    -- seconds.
    _times constant timestamptz[] := array(
        select t from generate_series(since, until, interval '1 min') as t
    );
    _ids constant uuid[] := array(select jobq_private.id_floor(t) from unnest(_times) as t);
    _classes constant double precision[] := array(
        select (power(2, k / 2.0) - 1) / 1000 from generate_series(1, 49) as k
    );
    _end constant uuid := _ids[cardinality(_ids)];
    _width constant interval := make_interval(mins => minutes);
    _from constant timestamptz := date_bin(_width, since, '2000-01-01 UTC');
    _to constant timestamptz := date_bin(_width, until, '2000-01-01 UTC');
begin
    if narrow is not null then
        return query
        select date_bin(_width, h.bucket, '2000-01-01 UTC'), h.queue, h.kind, c.event, null, c.jobs
        from jobq_private.history as h
        cross join lateral (
            values ('enqueued', h.enqueued), ('succeeded', h.succeeded), ('failed', h.failed),
            ('dead', h.dead), ('cancelled', h.cancelled)
        ) as c (event, jobs)
        where h.minutes = narrow and h.bucket >= _from and h.bucket < _to
        union all
        select date_bin(_width, l.bucket, '2000-01-01 UTC'), null, null, null, c.n::integer - 1, c.jobs
        from jobq_private.latency as l
        cross join unnest(l.counts) with ordinality as c (jobs, n)
        where l.minutes = narrow and l.bucket >= _from and l.bucket < _to;
        return;
    end if;
    return query
    select _times[e.n], e.queue, e.kind, e.event, e.class, count(*)
    from (
        select width_bucket(a.finished_at, _times) as n, a.queue, a.kind, a.state as event,
            case a.state when 'succeeded' then width_bucket(date_part('epoch', a.finished_at
                - case a.attempt when 1 then greatest(a.run_at, a.created_at) else a.created_at end
            ), _classes) end as class
        from jobq_private.job_archive as a
        where a.finished_at >= since and a.finished_at < until
        union all
        select width_bucket(j.job_id, _ids), j.queue, j.kind, 'enqueued', null
        from jobq_private.job as j
        where j.job_id >= _ids[1] and j.job_id < _end
        union all
        select width_bucket(a.job_id, _ids), a.queue, a.kind, 'enqueued', null
        from jobq_private.job_archive as a
        where a.job_id >= _ids[1] and a.job_id < _end and a.finished_at >= since
        union all
        select width_bucket(t.finished_at, _times), coalesce(j.queue, a.queue), coalesce(j.kind, a.kind),
            'failed', null
        from jobq_private.attempt as t
        left join jobq_private.job as j on j.job_id = t.job_id
        left join lateral (
            select h.queue, h.kind
            from jobq_private.job_archive as h
            where j.job_id is null and h.job_id = t.job_id and h.finished_at >= t.finished_at
            limit 1
        ) as a on true
        where t.finished_at >= since and t.finished_at < until and t.state = 'retrying'
    ) as e
    where e.queue is not null
    group by 1, 2, 3, 4, 5;
end
$$;
