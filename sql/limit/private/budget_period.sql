-- Purpose: the begin and the end of the budget period that contains this moment: a
-- calendar day, a week from Monday, or a month, in the budget's time zone.
-- Invariant: one row. Inlined, so no SET clause.
create or replace function jobq_private.budget_period(budget jobq_private.budget, now timestamptz)
returns table (start_at timestamptz, end_at timestamptz) language sql stable rows 1 as $$
    select
        date_trunc(budget.period, now, budget.time_zone),
        (date_trunc(budget.period, now at time zone budget.time_zone)
            + ('1 ' || budget.period)::interval) at time zone budget.time_zone
$$;
