-- Purpose: the median and the 95th percentile of latencies, in milliseconds, for each
-- stretch of so many seconds between two times, by its number.
create or replace function jobq_private.latency_percentiles(
    minutes integer, since timestamptz, until timestamptz, seconds double precision
)
returns table (n integer, p50 bigint, p95 bigint) language sql stable as $$
    select p.n, min(p.value) filter (where p.upto >= 0.5 * p.total),
        min(p.value) filter (where p.upto >= 0.95 * p.total)
    from (
        select t.n, round(power(2::double precision, (t.class - 0.5) / 2))::bigint as value,
            sum(t.jobs) over (partition by t.n order by t.class) as upto,
            sum(t.jobs) over (partition by t.n) as total
        from (
            select
                floor(date_part('epoch', l.bucket - since) / seconds)::integer as n,
                c.class, sum(c.jobs) as jobs
            from jobq_private.latency as l
            cross join unnest(l.counts) with ordinality as c (jobs, class)
            where l.minutes = latency_percentiles.minutes
            and l.bucket >= since and l.bucket < until and c.jobs > 0
            group by 1, 2
        ) as t
    ) as p
    group by p.n
$$;
