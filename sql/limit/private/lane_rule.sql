-- Purpose: what holds for a lane: that of a kind's key what the kind says for each key; another the key's own
-- limits, else what the queue says for each key.
-- Invariant: one row; all null for jobs without a key. An ordered lane runs one job at a time.
-- No SET clause, so that it is inlined, and offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_rule(queue text, concurrency_key text, kind text)
returns setof jobq_private.lane_rule
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
        left join jobq_private.queue as q on q.queue = lane_rule.queue
        left join jobq_private.key_limit as l
            on l.queue = lane_rule.queue and l.concurrency_key = lane_rule.concurrency_key
        where lane_rule.kind is null and lane_rule.concurrency_key is not null
        union all
        select
            k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst, k.ordered,
            k.on_dead, k.key_budget
        from jobq_private.kind as k
        where k.kind = lane_rule.kind
    ) as r on true
    offset 0
$$;
