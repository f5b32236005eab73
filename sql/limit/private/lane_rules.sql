-- Purpose: whether rates or an order bind lanes of a queue; whether all lanes with a key are alike, none with
-- limits of its own or held; and how many jobs each may then run.
-- Invariant: what a queue says for each key is what holds for the empty one, which no job has; the
-- caller holds off a change of the queue's limits. Raises: nothing.
create or replace function jobq_private.lane_rules(
    queue text, now timestamptz,
    out has_rules boolean, out are_alike boolean, out max_running integer
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    select
        r.spacing is not null or r.is_ordered or coalesce(o.has_rates, false),
        r.spacing is null and not r.is_ordered and o.has_rates is null
        and not exists (
            select from jobq_private.gate as g
            where g.queue = lane_rules.queue and g.held_until > lane_rules.now
        ),
        r.max_running
    into lane_rules.has_rules, lane_rules.are_alike, lane_rules.max_running
    from jobq_private.lane_rule(lane_rules.queue, '') as r
    cross join (
        select bool_or(l.rate_limit is not null) as has_rates
        from jobq_private.key_limit as l
        where l.queue = lane_rules.queue
    ) as o;
end
$$;

revoke all on function jobq_private.lane_rules from public;

comment on function jobq_private.lane_rules is
'Whether rates or an order bind lanes of a queue, and whether all are alike.';
