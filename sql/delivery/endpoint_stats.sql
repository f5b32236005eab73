-- Purpose: Returns statistics of recent deliveries to an endpoint: success rate,
-- latency, failures.
-- Invariant: covers the newest 1,000 attempts that ended in the period, read through two indexes,
-- so the cost is bounded. Released attempts do not count. Raises: 22004, 22023, JQ007.
-- Argument period: how far to look back, 1 s to 30 days.
-- Column since: start of the period; the first of the attempts if there are 1,000.
-- Column attempts: number of attempts that ended.
-- Column succeeded: number of attempts that succeeded.
-- Column failed: number of attempts that failed.
-- Column success_rate: share of succeeded attempts, 0 to 1; null without attempts.
-- Column p50_ms: median of the time from claim to end.
-- Column p95_ms: 95th percentile.
-- Column p99_ms: 99th percentile.
-- Column failures: an object with the number of failures by code.
-- Example: select * from jobq_internal.endpoint_stats('send-welcome');
create or replace function jobq_internal.endpoint_stats(
    endpoint text, period interval default interval '1 hour'
)
returns table (
    since timestamptz, attempts bigint, succeeded bigint, failed bigint,
    success_rate double precision, p50_ms bigint, p95_ms bigint, p99_ms bigint,
    failures jsonb
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _since timestamptz;
begin
    perform jobq_private.check_given('endpoint or period', num_nulls(endpoint, period));
    perform jobq_private.check_argument(case
        when period not between '1 s' and '30 days' then 'period must be from 1 s to 30 days'
    end);
    perform jobq_private.check_endpoints(array[endpoint_stats.endpoint]);
    _since := now() - endpoint_stats.period;
    return query
    with ended as materialized (
        (
            select a.finished_at, a.finished_at - a.claimed_at as took, null as code
            from jobq_private.job_archive as a
            where a.kind = endpoint_stats.endpoint
            and a.delivery_version is not null
            and a.state = 'succeeded'
            and a.finished_at >= _since
            order by a.finished_at desc
            limit 1000
        )
        union all
        (
            select f.finished_at, f.finished_at - f.started_at, coalesce(f.error_code, 'ERROR')
            from jobq_private.attempt as f
            where f.endpoint = endpoint_stats.endpoint
            and f.state in ('retrying', 'dead')
            and f.finished_at >= _since
            order by f.finished_at desc
            limit 1000
        )
        order by finished_at desc
        limit 1000
    )
    select
        case when count(*) = 1000 then min(e.finished_at) else _since end,
        count(*), count(*) filter (where e.code is null), count(e.code),
        avg((e.code is null)::integer)::double precision,
        jobq_private.milliseconds(percentile_disc(0.5) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.95) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.99) within group (order by e.took)),
        (
            select coalesce(jsonb_object_agg(c.code, c.jobs), '{}')
            from (
                select x.code, count(*) as jobs from ended as x where x.code is not null group by 1
            ) as c
        )
    from ended as e;
end
$$;
grant execute on function jobq_internal.endpoint_stats to jobq_operator, jobq_reader;
