-- Purpose: charge the costs of jobs that have started to the limits that they have
-- passed, to that of the whole queue only if is_limited.
-- Invariant: the caller has locked the limits.
create or replace function jobq_private.charge_jobs(job_ids uuid[], is_limited boolean)
returns void
language sql
as $$
    select jobq_private.charge(
        array_agg(s.limit_id), array_agg(s.cost), array_agg(s.last)
    )
    from (
        select
            l.limit_id, sum(coalesce(j.cost, 1)) as cost,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        cross join lateral (
            select j.key_id as limit_id
            where j.concurrency_key is not null
            union all
            select o.limit_id
            from jobq_private.job_limits(j) as o
            where o.concurrency_key is null and (charge_jobs.is_limited or o.kind is not null)
        ) as l
        where j.job_id = any(charge_jobs.job_ids)
        group by l.limit_id
    ) as s
$$;
