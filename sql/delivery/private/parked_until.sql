-- Purpose: run_at of jobs that wait for a paused endpoint: the latest date that a job can have.
-- Invariant: a constant.
create or replace function jobq_private.parked_until()
returns timestamptz language sql immutable as $$
    select timestamptz '9999-12-30 00:00:00 UTC'
$$;
