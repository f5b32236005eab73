-- Purpose: what holds for a kind in a queue: the kind's word, else the queue's, else the
-- global default. A call's own argument goes before all three, at the call.
-- Invariant: this is the one place of resolution; undeclared kinds and queues get the
-- defaults. Raises: nothing.
create or replace function jobq_private.settings_for(kind text, queue text)
returns jobq_private.settings
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _settings jobq_private.settings;
begin
    select
        coalesce(settings_for.queue, k.queue, 'default'),
        coalesce(k.priority, q.priority, g.priority),
        coalesce(k.max_attempts, q.max_attempts, g.max_attempts),
        coalesce(k.timeout, q.timeout, g.timeout),
        coalesce(k.lease, q.lease, g.lease),
        coalesce(k.retry_strategy, p.strategy),
        coalesce(k.retry_initial_delay, p.initial_delay),
        coalesce(k.retry_max_delay, p.max_delay),
        coalesce(k.retry_jitter, p.jitter),
        coalesce(k.dedup, g.dedup),
        coalesce(k.reuse_key_after_failure, g.reuse_key_after_failure),
        k.payload_schema,
        q.max_depth
    into _settings
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(settings_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset);
    return _settings;
end
$$;

revoke all on function jobq_private.settings_for(text, text) from public;

comment on function jobq_private.settings_for(text, text) is
'Resolves the settings of a kind in a queue: kind, else queue, else global default.';
