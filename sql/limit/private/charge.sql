-- Purpose: charge the cost of jobs that have started to the rate and the budget of a limit.
-- Invariant: the caller holds the limit. Counted from the clock after the starts, so that none lies closer
-- to the next than its rate says. What started before charged_since was not charged: spend() gives
-- nothing back for it. idle_at says from when nothing of it all counts. Raises: nothing.
create or replace function jobq_private.charge(
    limit_id uuid, scope text, spacing double precision, budget jobq_private.budget, cost numeric,
    concurrency_key text default null, is_ordered boolean default false, last uuid default null
)
returns void
language sql
as $$
    update jobq_private.limit_state as g
    set
        scope = charge.scope,
        concurrency_key = coalesce(g.concurrency_key, charge.concurrency_key),
        level = n.level,
        spent = n.spent,
        charged_at = n.now,
        charged_since = case
            when n.level is not null and g.level is null or n.spent is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        idle_at = jobq_private.idle_at(n.level, charge.spacing, charge.budget, n.now),
        head_job_id = case when charge.is_ordered then charge.last end
    from (
        select
            c.now,
            case
                when charge.spacing is not null
                then jobq_private.level(o.level, o.charged_at, charge.spacing, c.now) + charge.cost
            end as level,
            case
                when (charge.budget).amount is not null
                then jobq_private.budget_spent(charge.budget, o.spent, o.charged_at, c.now)
                    + charge.cost
            end as spent
        from jobq_private.limit_state as o
        cross join (select clock_timestamp() as now offset 0) as c
        where o.limit_id = charge.limit_id
    ) as n
    where g.limit_id = charge.limit_id
$$;
