-- Purpose: the settings of a new job: of its kind, else of its queue, else the global default.
-- Resolved only here, in retry_policy_for() and in max_attempts_for(). Inlined, so no SET clause.
create or replace function jobq_private.settings_for(kind text, queue text)
returns setof jobq_private.settings language sql stable rows 1 as $$
    select
        coalesce(settings_for.queue, k.queue, 'default'),
        coalesce(k.priority, q.priority, g.priority),
        coalesce(k.max_attempts, q.max_attempts, g.max_attempts),
        coalesce(k.timeout, q.timeout, g.timeout),
        coalesce(k.lease, q.lease, g.lease),
        coalesce(k.dedup, g.dedup),
        coalesce(k.reuse_key_after_failure, g.reuse_key_after_failure),
        k.payload_schema,
        k.json_schema,
        g.max_payload_bytes,
        g.max_payload_depth,
        q.max_depth,
        k.delivery_version,
        k.concurrency_key,
        pg_catalog.num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0,
        coalesce(k.dedup_period, interval '10 s'),
        k.dedup_max_wait,
        k.keep,
        k.cost,
        g.shard_id,
        k.dedup_key
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(settings_for.queue, k.queue, 'default')
$$;
