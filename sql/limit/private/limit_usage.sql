-- Purpose: the limits of these scopes, n by n, and their usage: of a rate (in units of cost per
-- second), the level of its leaky bucket; of a budget, the charges of its current period; and
-- whether starts must be charged. Inlined if the arguments are variables, so no SET clause;
-- offset 0: evaluated once.
-- Invariant: one row for each. A limit of a single key replaces the queue's limit for each key.
create or replace function jobq_private.limit_usage(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, max_running integer,
    is_ordered boolean, holds_on_dead boolean, rate double precision, burst integer,
    rate_used double precision, budget jobq_private.budget, period_start timestamptz,
    period_end timestamptz, spent numeric, next_cost numeric, next_until timestamptz,
    charged_since timestamptz, first_job_id uuid, is_charged boolean
)
language sql stable as $$
    with declared as materialized (
        select o.*, d.*, o.is_key and o.kind is null and (
            select true from jobq_private.key_limit as l where l.queue = o.queue limit 1
        ) as has_own_limits
        from (
            select distinct s.queue, s.kind, s.concurrency_key is not null as is_key
            from unnest(limit_usage.scopes) as s
        ) as o
        left join lateral (
            select q.key_max_running as max_running, q.key_rate_limit as rate_limit,
                q.key_rate_period as rate_period, q.key_rate_burst as rate_burst,
                q.key_budget as budget, q.ordered, q.on_dead
            from jobq_private.queue as q
            where o.is_key and o.kind is null and q.queue = o.queue
            union all
            select q.max_running, q.rate_limit, q.rate_period, q.rate_burst, q.budget, false, null
            from jobq_private.queue as q
            where not o.is_key and o.kind is null and q.queue = o.queue
            union all
            select k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
                k.key_budget, k.ordered, k.on_dead
            from jobq_private.kind as k
            where o.is_key and k.kind = o.kind
            union all
            select k.max_running, k.rate_limit, k.rate_period, k.rate_burst, k.budget, false, null
            from jobq_private.kind as k
            where not o.is_key and o.queue is null and k.kind = o.kind
        ) as d on true
    )
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case when d.ordered then 1 else coalesce(l.max_running, d.max_running) end,
        coalesce(d.ordered, false), coalesce(d.on_dead = 'hold', false), u.rate,
        coalesce(case when l.rate_limit is null then d.rate_burst else l.rate_burst end, 1),
        case
            when u.rate is null then null
            -- a later charge comes from a clock that was set back
            when g.charged_at <= limit_usage.now + interval '10 s' then greatest(
                0, coalesce(g.rate_used, 0)
                - u.rate * greatest(0, date_part('epoch', limit_usage.now - g.charged_at))
            )
            else 0
        end,
        u.budget, p.start_at, p.end_at,
        case when g.charged_at >= p.start_at then coalesce(g.spent, 0) else 0 end,
        case when g.next_until > limit_usage.now then g.next_cost end,
        case when g.next_until > limit_usage.now then g.next_until end,
        g.charged_since, g.first_job_id,
        not d.is_key or coalesce(d.ordered, false) or num_nonnulls(u.rate, u.budget, s.kind) > 0
    from unnest(limit_usage.scopes)
        with ordinality as s (limit_id, queue, kind, concurrency_key, n)
    join declared as d
        on d.is_key = (s.concurrency_key is not null)
        and coalesce(d.queue, '') = coalesce(s.queue, '')
        and coalesce(d.kind, '') = coalesce(s.kind, '')
    -- The limits keep the planner from reading whole tables, for a hash.
    left join lateral (
        select l.*
        from jobq_private.key_limit as l
        where d.has_own_limits and l.queue = s.queue and l.concurrency_key = s.concurrency_key
        limit 1
    ) as l on true
    cross join lateral (
        select
            coalesce(l.rate_limit, d.rate_limit) / date_part('epoch', coalesce(
                case when l.rate_limit is null then d.rate_period else l.rate_period end, '1 s'
            )) as rate,
            case when l.budget is null then d.budget else l.budget end as budget
    ) as u
    left join lateral (
        select g.*
        from jobq_private.limit_state as g
        where (d.ordered or num_nonnulls(u.rate, u.budget) > 0) and g.limit_id = s.limit_id
        limit 1
    ) as g on true
    left join lateral jobq_private.budget_period(u.budget, limit_usage.now) as p on true
    offset 0
$$;
