-- Purpose: charge costs to limits that the caller has locked, and record the last job
-- that started in an ordered key. A negative cost corrects the charge of a job that
-- started at claimed_at.
-- Invariant: uses the clock after the starts. A refund is at most the debt of the rate,
-- and for a budget the charges of its current period since charged_since. Limits that
-- span keys or queues are also written, so that an older repeatable snapshot fails.
create or replace function jobq_private.charge(
    limits uuid[], costs numeric[], jobs uuid[], claimed_at timestamptz default null,
    charged numeric default null
)
returns void
language sql
as $$
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
            case when u.is_ordered then a.job_id end as first_job_id,
            case when u.rate is not null then greatest(0, u.rate_used + case
                when a.cost >= 0 then a.cost
                when charge.claimed_at >= u.charged_since then greatest(a.cost, least(
                    0, extract(epoch from c.now - charge.claimed_at) * u.rate - charge.charged
                ))
                else 0
            end) end as rate_used,
            case when (u.budget).amount is not null then greatest(0, u.spent + case
                when a.cost >= 0
                    or charge.claimed_at >= greatest(u.charged_since, u.period_start)
                then a.cost
                else 0
            end) end as spent
        from unnest(charge.limits, charge.costs, charge.jobs) as a (limit_id, cost, job_id)
        join jobq_private.limit_state as o on o.limit_id = a.limit_id
        cross join (select clock_timestamp() as now offset 0) as c
        cross join lateral jobq_private.limit_usage(
            o.limit_id, o.queue, o.kind, o.concurrency_key, c.now
        ) as u
        where num_nonnulls(u.rate, u.budget, o.kind) > 0
        or u.is_ordered or o.concurrency_key is null
    ) as n
    where g.limit_id = n.limit_id
$$;
