-- Purpose: Returns the effective settings of a kind in a queue: from the kind, the queue or the
-- defaults.
-- Invariant: resolved as by enqueue(). Raises: nothing.
-- Argument kind: the kind; null means an undeclared kind.
-- Argument queue: the queue; null means the kind's, else default.
-- Returns: a JSON object: the limits of a kind have kind_ before their names; queue, priority,
-- max_attempts, timeout, lease, dedup, max_depth, retry_strategy, retention, run and what else
-- holds; every default of configure() is there.
-- Example: select jobq.settings('send_email') ->> 'max_attempts';
create or replace function jobq.settings(kind text default null, queue text default null)
returns jsonb language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
-- Before 18, PostgreSQL would compile this plan, which takes a second.
set jit = off as $$
    select to_jsonb(s) - '{delivery_version,is_limited,keep,shard_id}'::text[] || to_jsonb(r)
    || jsonb_build_object(
        'max_expiries', g.max_expiries, 'retention', g.retention,
        'keep_succeeded', least(s.keep[1], g.retention),
        'keep_dead', least(s.keep[2], g.retention),
        'keep_cancelled', least(s.keep[3], g.retention),
        'key_retention', g.key_retention, 'redact_emails', g.redact_emails,
        'run', k.run, 'dead_letter_kind', k.dead_letter_kind
    ) || (
        select jsonb_object_agg(o.prefix || n.name, o.declared -> n.name)
        from unnest('{
            max_running, rate_limit, rate_period, rate_burst, key_max_running, key_rate_limit,
            key_rate_period, key_rate_burst, ordered, on_dead
        }'::text[]) as n (name)
        cross join (values ('', to_jsonb(q)), ('kind_', to_jsonb(k))) as o (prefix, declared)
    )
    from jobq_private.settings_for(kind, queue) as s
    cross join jobq_private.retry_policy_for(kind, queue, s.delivery_version) as r
    cross join jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings.kind
    left join jobq_private.queue as q on q.queue = s.queue
$$;
grant execute on function jobq.settings to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
