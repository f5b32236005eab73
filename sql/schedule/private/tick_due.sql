-- Purpose: when the next slot of any schedule is due, for maintain_in(); null without one.
-- Invariant: reads one index entry.
create or replace function jobq_private.tick_due()
returns timestamptz language sql stable as $$
    select min(s.due_at) from jobq_private.due_schedule as s
$$;
