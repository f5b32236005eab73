-- Purpose: when jobs are due that wait for a paused endpoint: the last day that a job may have.
-- Invariant: a constant. Raises: nothing.
create or replace function jobq_private.parked_until()
returns timestamptz
language sql
immutable
parallel safe
as $$
    select timestamptz '9999-12-30 00:00:00 UTC'
$$;
