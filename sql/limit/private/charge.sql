-- Purpose: charge the costs of jobs that start to their limits, to that of the whole queue only
-- if is_limited, and record the last job that started in an ordered key. Raw SQL may move a job
-- as it starts: limits are then those that it has now. For a running job, correction is the
-- difference to what was charged before.
-- Invariant: the caller has locked the limits. Uses the clock after the starts. A refund is at
-- most the debt of the rate, and for a budget the charges of its current period since
-- charged_since. Limits that span keys or queues are also written, so that an older repeatable
-- snapshot fails. Callers pin the planner's settings.
create or replace function jobq_private.charge(
    job_ids uuid[], is_limited boolean, limits uuid[] default null,
    correction numeric default null, charged numeric default null
)
returns void language plpgsql as $$
declare
    _scopes jobq_private.scope[];
    _costs numeric[];
    _starts timestamptz[];
    _last_ids uuid[];
    _now constant timestamptz := clock_timestamp();
begin
    select
        array_agg(row(o.limit_id, o.queue, o.kind, o.concurrency_key)::jobq_private.scope),
        array_agg(a.cost), array_agg(a.claimed_at), array_agg(a.last_id)
    into _scopes, _costs, _starts, _last_ids
    from (
        select
            l.limit_id, sum(coalesce(charge.correction, j.cost, 1)) as cost,
            max(j.claimed_at) as claimed_at,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last_id
        from jobq_private.job as j
        cross join lateral (
            select unnest(charge.limits) as limit_id
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
    join jobq_private.limit_state as o on o.limit_id = a.limit_id;
    update jobq_private.limit_state as g
    set
        rate_used = case when n.rate is not null then greatest(0, n.rate_used + case
            when n.cost >= 0 then n.cost
            when n.started_at >= n.charged_since then greatest(n.cost, least(
                0, extract(epoch from _now - n.started_at) * n.rate - charge.charged
            ))
            else 0
        end) end,
        spent = case when (n.budget).amount is not null then greatest(0, n.spent + case
            when n.cost >= 0 or n.started_at >= greatest(n.charged_since, n.period_start)
            then n.cost
            else 0
        end) end,
        charged_at = _now,
        charged_since = case
            when n.rate is not null and g.rate_used is null
                or (n.budget).amount is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        first_job_id = case when n.is_ordered then _last_ids[n.n] end
    from (
        select u.*, _costs[u.n] as cost, _starts[u.n] as started_at
        from jobq_private.limit_usage(_scopes, _now) as u
        where u.is_charged
    ) as n
    where g.limit_id = n.limit_id;
end
$$;
