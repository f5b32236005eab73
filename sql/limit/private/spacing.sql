-- Purpose: the microseconds from one start to the next that a rate asks for; null without a
-- rate.
-- Invariant: rounded up, so that no rate is exceeded; at least one. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.spacing(rate_limit integer, rate_period interval)
returns bigint
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.ceil(
        extract(epoch from coalesce(rate_period, interval '1 s')) * 1000000 / rate_limit
    )::bigint
$$;

revoke all on function jobq_private.spacing from public;

comment on function jobq_private.spacing is
'The microseconds from one start to the next that a rate asks for.';
