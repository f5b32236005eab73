-- Purpose: when resolve() has work, for maintain_in(); null if it has none.
-- Invariant: pending is nearly always empty.
create or replace function jobq_private.pending_due()
returns timestamptz language sql stable as $$
    select min(l.due_at) from jobq_private.pending as l
$$;
