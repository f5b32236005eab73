-- Purpose: how a failed job of a kind in a queue is tried again: a delivery as its endpoint
-- said when the job was made; else the kind's word, else the queue's, else the default.
-- Invariant: one row; beside settings_for(), so that enqueues do not pay for it. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.retry_policy_for(
    kind text, queue text, delivery_version integer
)
returns setof jobq_private.retry_policy
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        coalesce(v.retry ->> 'strategy', k.retry_strategy, p.strategy),
        coalesce(
            (v.retry ->> 'initial_delay')::interval, k.retry_initial_delay, p.initial_delay
        ),
        coalesce((v.retry ->> 'max_delay')::interval, k.retry_max_delay, p.max_delay),
        coalesce((v.retry ->> 'jitter')::double precision, k.retry_jitter, p.jitter)
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = retry_policy_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(retry_policy_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset)
    left join lateral (
        select d.document -> 'retry' as retry
        from jobq_private.definition_version as d
        where retry_policy_for.delivery_version is not null
        and d.type = 'delivery'
        and d.name = retry_policy_for.kind
        and d.version = retry_policy_for.delivery_version
    ) as v on true
$$;

revoke all on function jobq_private.retry_policy_for from public;

comment on function jobq_private.retry_policy_for is
'Resolves how a failed job is tried again: its delivery, else kind, else queue, else global default.';
