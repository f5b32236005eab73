-- Purpose: how many units of cost a rate lets start now; null without a rate.
-- Invariant: a job may start while there is one unit, whatever it costs: those behind it wait until
-- time has paid for it. A millionth of a unit is rounding. No SET clause, so that it is inlined.
-- Raises: nothing.
create or replace function jobq_private.rate_left(
    level double precision, charged_at timestamptz, spacing double precision, burst integer,
    now timestamptz
)
returns integer
language sql
stable
parallel safe
as $$
    select case
        when spacing is not null
        then greatest(
            0, floor(burst - jobq_private.level(level, charged_at, spacing, now) + 1e-6)
        )::integer
    end
$$;
