-- Purpose: when a rate lets the next job start; null for at once.
-- Invariant: as rate_left(); at most 30 years ahead. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.rate_opens_at(
    level double precision, charged_at timestamptz, spacing double precision, burst integer,
    now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
as $$
    select case
        when jobq_private.rate_left(level, charged_at, spacing, burst, now) = 0
        then now + interval '1 us' * (1 + least(
            1e15, (jobq_private.level(level, charged_at, spacing, now) - burst + 1) * spacing
        ))
    end
$$;
