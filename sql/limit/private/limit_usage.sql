-- Purpose: the limits of a scope and their usage: of a rate (in units of cost per second), the level
-- of its leaky bucket; of a budget, the charges of its current period; and whether starts must be
-- charged. Inlined, so no SET clause; offset 0, so that it is evaluated once.
-- Invariant: one row. A limit of a single key replaces the queue's limit for each key.
create or replace function jobq_private.limit_usage(
    limit_id uuid, queue text, kind text, concurrency_key text, now timestamptz
)
returns table (
    max_running integer, is_ordered boolean, holds_on_dead boolean, rate double precision,
    burst integer, rate_used double precision, budget jobq_private.budget,
    period_start timestamptz, period_end timestamptz, spent numeric, next_cost numeric,
    next_until timestamptz, charged_since timestamptz, first_job_id uuid, is_charged boolean
)
language sql
stable
rows 1
as $$
    select
        case when r.ordered then 1 else r.max_running end,
        coalesce(r.ordered, false),
        coalesce(r.on_dead = 'hold', false),
        u.rate,
        coalesce(r.rate_burst, 1),
        case
            when u.rate is null then null
            -- a later charge comes from a clock that was set back
            when g.charged_at <= limit_usage.now + interval '10 s' then greatest(
                0, coalesce(g.rate_used, 0)
                - u.rate * greatest(0, extract(epoch from limit_usage.now - g.charged_at))
            )
            else 0
        end,
        r.budget, p.start_at, p.end_at,
        case when g.charged_at >= p.start_at then coalesce(g.spent, 0) else 0 end,
        case when g.next_until > limit_usage.now then g.next_cost end,
        case when g.next_until > limit_usage.now then g.next_until end,
        g.charged_since, g.first_job_id,
        num_nonnulls(u.rate, r.budget, limit_usage.kind) > 0 or coalesce(r.ordered, false)
        or limit_usage.concurrency_key is null
    from (values (1)) as v
    left join (
        select
            coalesce(l.max_running, q.key_max_running) as max_running,
            coalesce(l.rate_limit, q.key_rate_limit) as rate_limit,
            case when l.rate_limit is null then q.key_rate_period else l.rate_period end
                as rate_period,
            case when l.rate_limit is null then q.key_rate_burst else l.rate_burst end
                as rate_burst,
            q.ordered, q.on_dead,
            case when l.budget is null then q.key_budget else l.budget end as budget
        from (values (1)) as one
        left join jobq_private.queue as q on q.queue = limit_usage.queue
        left join jobq_private.key_limit as l
            on l.queue = limit_usage.queue and l.concurrency_key = limit_usage.concurrency_key
        where limit_usage.kind is null and limit_usage.concurrency_key is not null
        union all
        select
            q.max_running, q.rate_limit, q.rate_period, q.rate_burst, false, null, q.budget
        from jobq_private.queue as q
        where q.queue = limit_usage.queue
        and limit_usage.kind is null and limit_usage.concurrency_key is null
        union all
        select
            k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst, k.ordered,
            k.on_dead, k.key_budget
        from jobq_private.kind as k
        where k.kind = limit_usage.kind and limit_usage.concurrency_key is not null
        union all
        select k.max_running, k.rate_limit, k.rate_period, k.rate_burst, false, null, k.budget
        from jobq_private.kind as k
        where k.kind = limit_usage.kind
        and limit_usage.queue is null and limit_usage.concurrency_key is null
    ) as r on true
    left join jobq_private.limit_state as g on g.limit_id = limit_usage.limit_id
    cross join lateral (
        select r.rate_limit
            / extract(epoch from coalesce(r.rate_period, '1 s'))::double precision as rate
    ) as u
    left join lateral jobq_private.budget_period(r.budget, limit_usage.now) as p on true
    offset 0
$$;
