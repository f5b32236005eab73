-- Purpose: from when nothing counts any more of what was charged to a rate and a budget.
-- Invariant: at most 30 years ahead; null where neither is. Raises: nothing.
create or replace function jobq_private.idle_at(
    level double precision, spacing double precision, budget jobq_private.budget, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
as $$
    select greatest(
        case when level is not null then now + interval '1 us' * least(1e15, level * spacing) end,
        jobq_private.budget_end(budget, now)
    )
$$;
