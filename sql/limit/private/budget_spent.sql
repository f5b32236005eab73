-- Purpose: what has been charged to a budget in its present period.
-- Invariant: what was charged before it began counts no more.
create or replace function jobq_private.budget_spent(
    budget jobq_private.budget, spent numeric, charged_at timestamptz, now timestamptz
)
returns numeric
language sql
stable
parallel safe
as $$
    select case
        when spent is null or charged_at < jobq_private.budget_start(budget, now) then 0
        else spent
    end
$$;
