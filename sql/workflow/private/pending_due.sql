-- Purpose: when resolve() has something to do, for maintain_in(); null when nothing is to be done.
-- Invariant: pending is nearly always empty. Raises: nothing.
create or replace function jobq_private.pending_due()
returns timestamptz
language sql
stable
as $$
    select min(l.due_at) from jobq_private.pending as l
$$;
