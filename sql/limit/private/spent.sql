-- Purpose: until when a rate is spent, once so many jobs have started.
-- Invariant: counted from the clock after the starts, so that none lies closer to the next
-- than its rate says. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.spent(
    passed_until timestamptz, spacing bigint, burst integer, jobs bigint, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case when spacing is null then passed_until else
        greatest(now, least(passed_until, now + burst * spacing * interval '1 us'))
        + jobs * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.spent from public;

comment on function jobq_private.spent is
'Until when a rate is spent, once so many jobs have started.';
