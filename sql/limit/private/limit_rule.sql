-- Purpose: what holds for a scope: a kind (with a key: each key of it), else a queue
-- (with a key: what put_limit() says of it, else what the queue says of each). A kind
-- in a queue has only holds.
-- Invariant: one row. An ordered key runs one job at a time. Inlined, so no SET clause;
-- offset 0, so that it is evaluated once.
create or replace function jobq_private.limit_rule(queue text, kind text, concurrency_key text)
returns setof jobq_private.limit_rule
language sql
stable
parallel safe
rows 1
as $$
    select
        case when r.ordered then 1 else r.max_running end,
        jobq_private.spacing(r.rate_limit, r.rate_period),
        coalesce(r.rate_burst, 1),
        coalesce(r.ordered, false),
        coalesce(r.on_dead = 'hold', false),
        r.budget
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
        left join jobq_private.queue as q on q.queue = limit_rule.queue
        left join jobq_private.key_limit as l
            on l.queue = limit_rule.queue and l.concurrency_key = limit_rule.concurrency_key
        where limit_rule.kind is null and limit_rule.concurrency_key is not null
        union all
        select
            q.max_running, q.rate_limit, q.rate_period, q.rate_burst, false, null, q.budget
        from jobq_private.queue as q
        where q.queue = limit_rule.queue
        and limit_rule.kind is null and limit_rule.concurrency_key is null
        union all
        select
            k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst, k.ordered,
            k.on_dead, k.key_budget
        from jobq_private.kind as k
        where k.kind = limit_rule.kind and limit_rule.concurrency_key is not null
        union all
        select k.max_running, k.rate_limit, k.rate_period, k.rate_burst, false, null, k.budget
        from jobq_private.kind as k
        where k.kind = limit_rule.kind
        and limit_rule.queue is null and limit_rule.concurrency_key is null
    ) as r on true
    offset 0
$$;
