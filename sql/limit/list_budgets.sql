-- Purpose: Lists the budgets, with the amounts spent and reserved in the current
-- period; a budget of each key has one more row per key with spending.
-- Invariant: reads only. Raises: nothing. Column time_zone: in which the period begins.
-- Argument scope_type: only of this type, queue or kind; null means both.
-- Argument scope: only of this queue or kind; null means all.
-- Argument max_keys: maximum number of keys of each budget for each key; those that
-- have spent most come first.
-- Column concurrency_key: null if the budget is that of the whole scope or, with
-- each_key, of each key.
-- Column spent: the charges of this period, including the amounts reserved by running jobs.
-- Column reserved: the part of it that is reserved by running jobs which have not
-- reported their cost.
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
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
    with budget as (
        select b.*, p.*
        from (
            select 'queue' as scope_type, q.queue as scope, q.queue, null::text as kind,
                null::text as concurrency_key, v.each_key, v.budget
            from jobq_private.queue as q
            cross join lateral (values (false, q.budget), (true, q.key_budget))
                as v (each_key, budget)
            union all
            select 'queue', l.queue, l.queue, null, l.concurrency_key, false, l.budget
            from jobq_private.key_limit as l
            union all
            select 'kind', k.kind, null, k.kind, null, v.each_key, v.budget
            from jobq_private.kind as k
            cross join lateral (values (false, k.budget), (true, k.key_budget))
                as v (each_key, budget)
        ) as b
        cross join lateral jobq_private.budget_period(b.budget, clock_timestamp()) as p
        where b.budget is not null
        and (list_budgets.scope_type is null or b.scope_type = list_budgets.scope_type)
        and (list_budgets.scope is null or b.scope = list_budgets.scope)
    )
    select
        b.scope_type, b.scope, u.concurrency_key, b.each_key, (b.budget).amount,
        (b.budget).period, (b.budget).time_zone, u.spent,
        case when u.spent is not null then coalesce(r.reserved, 0) end, b.end_at
    from budget as b
    cross join lateral (
        select b.concurrency_key, case when not b.each_key then coalesce((
            select g.spent
            from jobq_private.limit_state as g
            where g.limit_id = jobq_private.limit_id(b.queue, b.kind, b.concurrency_key)
            and g.charged_at >= b.start_at
        ), 0) end as spent
        union all
        (
            select g.concurrency_key, g.spent
            from jobq_private.limit_state as g
            where b.each_key
            and g.queue is not distinct from b.queue and g.kind is not distinct from b.kind
            and g.concurrency_key is not null
            and g.spent > 0 and g.charged_at >= b.start_at
            and not exists (
                select from jobq_private.key_limit as l
                where l.queue = b.queue
                and l.concurrency_key = g.concurrency_key and l.budget is not null
            )
            order by g.spent desc
            limit greatest(0, list_budgets.max_keys)
        )
    ) as u
    left join lateral (
        select sum(coalesce(j.cost, 1)) as reserved
        from jobq_private.job as j
        where j.state = 'running'
        and coalesce(j.queue = b.queue, j.kind = b.kind)
        and coalesce(j.concurrency_key = u.concurrency_key, u.concurrency_key is null)
        and (
            b.kind is not null or u.concurrency_key is null
            or j.key_id = jobq_private.limit_id(j.queue, null, j.concurrency_key)
        )
        and j.claimed_at >= b.start_at
        and j.reported_cost is null
    ) as r on true
    order by 1, 2, 4, 3 nulls first
$$;
grant execute on function jobq_internal.list_budgets to jobq_operator, jobq_reader;
