-- Purpose: whether rates, budgets or an order bind lanes of a queue; whether all lanes with a key are alike,
-- none with limits of its own or held; and how many jobs each may then run.
-- Invariant: what lane_rule() says of a lane without limits of its own; the caller holds off a
-- change of the queue's limits. Hot: it pins the search path too. Raises: nothing.
create or replace function jobq_private.lane_rules(
    queue text, now timestamptz,
    out has_rules boolean, out are_alike boolean, out max_running integer
)
language plpgsql
stable
parallel safe
as $$
begin
    select
        r.has_rules,
        not r.has_rules
        and not exists (
            select from jobq_private.key_limit as l where l.queue = lane_rules.queue
        )
        and not exists (
            select from jobq_private.limit_state as g
            where g.queue = lane_rules.queue and g.held_until > lane_rules.now
        )
        and not exists (
            select from jobq_private.uncounted() as u where u.queue = lane_rules.queue
        ),
        case when q.ordered then 1 else q.key_max_running end
    into lane_rules.has_rules, lane_rules.are_alike, lane_rules.max_running
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = lane_rules.queue
    cross join lateral (
        select num_nonnulls(q.key_rate_limit, q.key_budget, nullif(q.ordered, false)) > 0 or exists (
            select from jobq_private.key_limit as l
            where l.queue = lane_rules.queue and num_nonnulls(l.rate_limit, l.budget) > 0
        ) as has_rules
        offset 0
    ) as r;
end
$$;
