-- Purpose: what holds for a lane: the key's own limits, else what the queue says for each key.
-- Invariant: one row; all null for jobs without a key. An ordered lane runs one job at a time.
-- No SET clause, so that it is inlined, and offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_rule(queue text, concurrency_key text)
returns setof jobq_private.lane_rule
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        case
            when lane_rule.concurrency_key is null then null
            when q.ordered then 1
            else coalesce(l.max_running, q.key_max_running)
        end,
        case
            when lane_rule.concurrency_key is null then null
            when l.rate_limit is not null
            then jobq_private.spacing(l.rate_limit, l.rate_period)
            else jobq_private.spacing(q.key_rate_limit, q.key_rate_period)
        end,
        coalesce(
            case when l.rate_limit is not null then l.rate_burst else q.key_rate_burst end, 1
        ),
        coalesce(q.ordered, false) and lane_rule.concurrency_key is not null,
        coalesce(q.on_dead = 'hold', false)
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = lane_rule.queue
    left join jobq_private.key_limit as l
        on l.queue = lane_rule.queue and l.concurrency_key = lane_rule.concurrency_key
    offset 0
$$;

revoke all on function jobq_private.lane_rule from public;

comment on function jobq_private.lane_rule is
'What holds for a lane: the key''s own limits, else what its queue says for each key.';
