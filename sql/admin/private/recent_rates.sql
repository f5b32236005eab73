-- Purpose: the metrics of all queues together that cover the last minutes, for metrics().
-- Invariant: reads the newest 5,000 jobs, the newest 1,000 that ended, and ten minutes
-- of attempts. Without data, a rate has no row.
create or replace function jobq_private.recent_rates()
returns table (name text, value double precision) language sql stable as $$
    select 'lost_attempts', count(*)
    from jobq_private.attempt as t
    where t.finished_at > statement_timestamp() - interval '10 min' and t.error_code = 'LEASE_EXPIRED'
    union all
    select 'enqueue_qps', case
        when count(*) < 5000 then count(*) / 60.0
        else 5000 / greatest(0.001, extract(epoch from
            statement_timestamp() - jobq_private.id_time((array_agg(s.job_id))[5000])))
    end
    from (
        select j.job_id
        from jobq.job as j
        where j.job_id >= jobq_private.id_floor(statement_timestamp() - interval '1 min')
        order by j.job_id desc
        limit 5000
    ) as s
    union all
    select m.name, m.value
    from (
        select
            percentile_cont(0.95) within group (
                order by extract(epoch from r.finished_at - r.created_at)
            ) as latency,
            avg((r.state = 'dead')::integer)::double precision as failed
        from (
            select a.state, a.created_at, a.finished_at
            from jobq_private.job_archive as a
            where a.state in ('succeeded', 'dead')
            and a.finished_at > statement_timestamp() - interval '2 days'
            order by a.job_id desc
            limit 1000
        ) as r
        where r.finished_at > statement_timestamp() - interval '5 min'
    ) as s
    cross join lateral (
        values ('job_latency_p95_seconds', s.latency), ('fail_rate', s.failed)
    ) as m (name, value)
    where m.value is not null
$$;
