-- Purpose: charge costs to limits that the caller has locked, and note which job is the
-- last of an ordered key. A negative cost corrects what the start of a job at
-- claimed_at has charged.
-- Invariant: counted from the clock after the starts, so that none lies closer to the
-- next than its rate allows. A refund is what time has not paid for yet, and what was
-- charged in the budget's present period: never what started before charged_since,
-- which was not charged. Also written for limits that span keys or queues, so that an
-- older repeatable snapshot fails.
create or replace function jobq_private.charge(
    limits uuid[], costs numeric[], jobs uuid[], claimed_at timestamptz default null,
    charged numeric default null
)
returns void
language sql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
    update jobq_private.limit_state as g
    set
        level = n.level,
        spent = n.spent,
        charged_at = n.now,
        charged_since = case
            when n.level is not null and g.level is null or n.spent is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        full_until = case when n.cost >= 0 then g.full_until end,
        head_job_id = n.head_job_id
    from (
        select
            o.limit_id, c.now, u.cost,
            case when r.is_ordered then u.job_id end as head_job_id,
            case when r.spacing is not null then greatest(
                0, jobq_private.level(o.level, o.charged_at, r.spacing, c.now) + case
                    when u.cost >= 0 then u.cost
                    when charge.claimed_at >= o.charged_since then greatest(u.cost, least(
                        0, extract(epoch from c.now - charge.claimed_at) * 1000000 / r.spacing
                        - charge.charged
                    ))
                    else 0
                end
            ) end as level,
            case when (r.budget).amount is not null then greatest(
                0, jobq_private.budget_spent(r.budget, o.spent, o.charged_at, c.now) + case
                    when u.cost >= 0 or charge.claimed_at >= greatest(
                        o.charged_since, jobq_private.budget_start(r.budget, c.now)
                    ) then u.cost
                    else 0
                end
            ) end as spent
        from unnest(charge.limits, charge.costs, charge.jobs) as u (limit_id, cost, job_id)
        join jobq_private.limit_state as o on o.limit_id = u.limit_id
        cross join lateral jobq_private.limit_rule(o.queue, o.kind, o.concurrency_key) as r
        cross join (select clock_timestamp() as now offset 0) as c
        where num_nonnulls(r.spacing, r.budget, o.kind) > 0
        or r.is_ordered or o.concurrency_key is null
    ) as n
    where g.limit_id = n.limit_id
$$;
