-- Purpose: what a kind says for each of its keys, in all queues.
-- Invariant: no row for kinds that say nothing. Those that are ordered run one job of a key at a time. No
-- SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.key_rule(kind text)
returns setof jobq_private.lane_rule
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        case when k.ordered then 1 else k.key_max_running end,
        jobq_private.spacing(k.key_rate_limit, k.key_rate_period),
        coalesce(k.key_rate_burst, 1),
        coalesce(k.ordered, false),
        coalesce(k.on_dead = 'hold', false)
    from jobq_private.kind as k
    where k.kind = key_rule.kind
    and pg_catalog.num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered) > 0
$$;

revoke all on function jobq_private.key_rule from public;

comment on function jobq_private.key_rule is
'What a kind says for each of its keys, in all queues.';
