-- Purpose: the limits that hold for jobs of a kind in a queue, for people to read.
-- Invariant: reads only; null for each that there is not. Raises: nothing.
create or replace function jobq_private.limits_for(kind text, queue text)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'max_running', q.max_running, 'rate_limit', q.rate_limit,
        'rate_period', q.rate_period, 'rate_burst', q.rate_burst,
        'key_max_running', q.key_max_running, 'key_rate_limit', q.key_rate_limit,
        'key_rate_period', q.key_rate_period, 'key_rate_burst', q.key_rate_burst,
        'ordered', q.ordered, 'on_dead', q.on_dead,
        'kind_max_running', k.max_running, 'kind_rate_limit', k.rate_limit,
        'kind_rate_period', k.rate_period, 'kind_rate_burst', k.rate_burst,
        'kind_key_max_running', k.key_max_running, 'kind_key_rate_limit', k.key_rate_limit,
        'kind_key_rate_period', k.key_rate_period, 'kind_key_rate_burst', k.key_rate_burst,
        'kind_ordered', k.ordered, 'kind_on_dead', k.on_dead
    )
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = limits_for.queue
    left join jobq_private.kind as k on k.kind = limits_for.kind
$$;

revoke all on function jobq_private.limits_for from public;

comment on function jobq_private.limits_for is
'The limits that hold for jobs of a kind in a queue.';
