-- Purpose: what a budget has left in its present period; null without a budget.
-- Invariant: less than nothing where jobs have reported more than they had reserved. Raises: nothing.
create or replace function jobq_private.budget_left(
    budget jobq_private.budget, spent numeric, charged_at timestamptz, now timestamptz
)
returns numeric
language sql
stable
parallel safe
as $$
    select budget.amount - jobq_private.budget_spent(budget, spent, charged_at, now)
$$;
