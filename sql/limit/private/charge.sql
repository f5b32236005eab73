-- Purpose: charge the costs of jobs that start to their limits, to that of the whole
-- queue only if is_limited, and record the last job that started in an ordered key. Raw
-- SQL may move a job as it starts: limits are then those that it has now. For a running
-- job, correction is the difference to what was charged before.
-- Invariant: the caller has locked the limits. Uses the clock after the starts. A refund
-- is at most the debt of the rate, and for a budget the charges of its current period
-- since charged_since. Limits that span keys or queues are also written, so that an older
-- repeatable snapshot fails. Callers pin the planner's settings.
create or replace function jobq_private.charge(
    job_ids uuid[], is_limited boolean, limits uuid[] default null,
    correction numeric default null, charged numeric default null
)
returns void
language plpgsql
as $$
begin
    update jobq_private.limit_state as g
    set
        rate_used = n.rate_used,
        spent = n.spent,
        charged_at = n.now,
        charged_since = case
            when n.rate_used is not null and g.rate_used is null
                or n.spent is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        first_job_id = n.first_job_id
    from (
        select
            o.limit_id, c.now,
            case when u.is_ordered then a.last_id end as first_job_id,
            case when u.rate is not null then greatest(0, u.rate_used + case
                when a.cost >= 0 then a.cost
                when a.claimed_at >= u.charged_since then greatest(a.cost, least(
                    0, extract(epoch from c.now - a.claimed_at) * u.rate - charge.charged
                ))
                else 0
            end) end as rate_used,
            case when (u.budget).amount is not null then greatest(0, u.spent + case
                when a.cost >= 0 or a.claimed_at >= greatest(u.charged_since, u.period_start)
                then a.cost
                else 0
            end) end as spent
        from (
            select
                l.limit_id, sum(coalesce(charge.correction, j.cost, 1)) as cost,
                max(j.claimed_at) as claimed_at,
                (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last_id
            from jobq_private.job as j
            cross join lateral (
                select n.limit_id
                from unnest(charge.limits) as n (limit_id)
                union all
                select j.key_id
                where charge.limits is null and j.concurrency_key is not null
                union all
                select o.limit_id
                from jobq_private.job_limits(j) as o
                where charge.limits is null and o.concurrency_key is null
                and (charge.is_limited or o.kind is not null)
            ) as l
            where j.job_id = any(charge.job_ids)
            group by l.limit_id
        ) as a
        join jobq_private.limit_state as o on o.limit_id = a.limit_id
        cross join (select clock_timestamp() as now offset 0) as c
        cross join lateral jobq_private.limit_usage(
            o.limit_id, o.queue, o.kind, o.concurrency_key, c.now
        ) as u
        where u.is_charged
    ) as n
    where g.limit_id = n.limit_id;
end
$$;
