-- Purpose: when the next period of a budget begins.
-- Invariant: as budget_start().
create or replace function jobq_private.budget_end(budget jobq_private.budget, now timestamptz)
returns timestamptz
language sql
stable
parallel safe
as $$
    select (
        date_trunc(budget.period, now at time zone budget.time_zone)
        + ('1 ' || budget.period)::interval
    ) at time zone budget.time_zone
$$;
