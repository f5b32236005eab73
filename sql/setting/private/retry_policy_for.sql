-- Purpose: how a failed job is retried: a delivery as its endpoint declared when the job was
-- made; else by the kind, the queue or the default. Inlined, so no SET clause.
create or replace function jobq_private.retry_policy_for(
    kind text, queue text, delivery_version integer
)
returns setof jobq_private.retry_policy language sql stable rows 1 as $$
    select
        coalesce(v.strategy, k.retry_strategy, p.strategy),
        coalesce(v.initial_delay, k.retry_initial_delay, p.initial_delay),
        coalesce(v.max_delay, k.retry_max_delay, p.max_delay),
        coalesce(v.jitter, k.retry_jitter, p.jitter)
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = retry_policy_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(retry_policy_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset)
    left join jobq_private.kind_retry as v
        on v.kind = retry_policy_for.kind and v.version = retry_policy_for.delivery_version
$$;
