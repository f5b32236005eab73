-- Purpose: whether rates or an order bind lanes of a queue.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.has_rules(queue text)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select from jobq_private.queue as q
        where q.queue = has_rules.queue and (q.key_rate_limit is not null or q.ordered)
    )
    or exists (
        select from jobq_private.key_limit as l
        where l.queue = has_rules.queue and l.rate_limit is not null
    );
end
$$;

revoke all on function jobq_private.has_rules from public;

comment on function jobq_private.has_rules is
'Whether rates or an order bind lanes of a queue.';
