-- Purpose: when the period of a budget began that has this moment.
-- Invariant: a calendar day, a week from Monday, or a month, in the budget's time zone.
create or replace function jobq_private.budget_start(
    budget jobq_private.budget, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
as $$
    select date_trunc(budget.period, now, budget.time_zone)
$$;
