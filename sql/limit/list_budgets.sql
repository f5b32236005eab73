-- Purpose: the budgets with the amounts spent in the current period; for a budget of
-- each key, one more row per key with spending.
-- Invariant: reads only. Raises: nothing.
-- Argument scope_type: of this type alone, queue or kind; null means of both.
-- Argument scope: of this queue or kind alone; null means of all.
-- Argument max_keys: at most so many keys of each budget for each key, those that have spent most.
-- Column concurrency_key: null where the budget is that of the whole scope or, with each_key, of each key.
-- Column spent: what is charged in this period, with what running jobs have reserved.
-- Column reserved: of it what running jobs have reserved that have not reported their cost.
-- Column next_period_at: when the next period begins.
-- Example: select * from jobq_internal.list_budgets();
create or replace function jobq_internal.list_budgets(
    scope_type text default null, scope text default null, max_keys integer default 100
)
returns table (
    scope_type text,
    scope text,
    concurrency_key text,
    each_key boolean,
    amount numeric,
    period text,
    time_zone text,
    spent numeric,
    reserved numeric,
    next_period_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with budget as (
        select 'queue' as scope_type, q.queue as scope, null::text as concurrency_key,
            false as each_key, q.budget
        from jobq_private.queue as q
        union all
        select 'queue', q.queue, null, true, q.key_budget from jobq_private.queue as q
        union all
        select 'queue', l.queue, l.concurrency_key, false, l.budget
        from jobq_private.key_limit as l
        union all
        select 'kind', k.kind, null, false, k.budget from jobq_private.kind as k
        union all
        select 'kind', k.kind, null, true, k.key_budget from jobq_private.kind as k
    ),
    one as (
        select b.* from budget as b where b.budget is not null
        and coalesce(b.scope_type = list_budgets.scope_type, list_budgets.scope_type is null)
        and coalesce(b.scope = list_budgets.scope, list_budgets.scope is null)
        union all
        select b.scope_type, b.scope, g.concurrency_key, true, b.budget
        from budget as b
        cross join lateral (
            select g.concurrency_key
            from jobq_private.limit_state as g
            where g.scope = b.scope_type || ' ' || b.scope
            and g.concurrency_key is not null
            and jobq_private.budget_spent(b.budget, g.spent, g.charged_at, clock_timestamp()) > 0
            and not exists (
                select from jobq_private.key_limit as l
                where b.scope_type = 'queue' and l.queue = b.scope
                and l.concurrency_key = g.concurrency_key and l.budget is not null
            )
            order by g.spent desc
            limit greatest(0, list_budgets.max_keys)
        ) as g
        where b.each_key and b.budget is not null
        and coalesce(b.scope_type = list_budgets.scope_type, list_budgets.scope_type is null)
        and coalesce(b.scope = list_budgets.scope, list_budgets.scope is null)
    )
    select
        o.scope_type, o.scope, o.concurrency_key, o.each_key, (o.budget).amount,
        (o.budget).period, (o.budget).time_zone,
        case
            when not o.each_key or o.concurrency_key is not null then coalesce(g.spent, 0)
        end,
        case
            when not o.each_key or o.concurrency_key is not null then coalesce(r.reserved, 0)
        end,
        jobq_private.budget_end(o.budget, clock_timestamp())
    from one as o
    left join lateral (
        select jobq_private.budget_spent(
            o.budget, g.spent, g.charged_at, clock_timestamp()
        ) as spent
        from jobq_private.limit_state as g
        where g.scope = o.scope_type || ' ' || o.scope
        and g.concurrency_key is not distinct from o.concurrency_key
        and g.spent is not null
    ) as g on true
    left join lateral (
        select sum(coalesce(j.cost, 1)) as reserved
        from jobq_private.job as j
        where j.state = 'running'
        and case o.scope_type when 'queue' then j.queue else j.kind end = o.scope
        and coalesce(j.concurrency_key = o.concurrency_key, o.concurrency_key is null)
        and (
            o.scope_type = 'kind' or o.concurrency_key is null
            or j.lane_id = jobq_private.lane_id(j.queue, j.concurrency_key)
        )
        and j.claimed_at >= jobq_private.budget_start(o.budget, clock_timestamp())
        and not exists (
            select from jobq_private.reported_cost as c
            where c.job_id = j.job_id and c.attempt = j.attempt
        )
    ) as r on true
    order by o.scope_type, o.scope, o.each_key, o.concurrency_key nulls first
$$;

grant execute on function jobq_internal.list_budgets to jobq_operator, jobq_reader;

comment on function jobq_internal.list_budgets is
'Lists the budgets, with how much of each is spent and reserved in its present period.';
