-- Purpose: when a rate lets the next job start; null for at once.
-- Invariant: as tokens(). No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.token_at(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case
        when jobq_private.tokens(passed_until, spacing, burst, now) = 0
        then least(passed_until, now + burst * spacing * interval '1 us')
            - (burst - 1) * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.token_at from public;

comment on function jobq_private.token_at is
'When a rate lets the next job start.';
