-- Purpose: a cursor for a position among finished jobs.
-- Invariant: microseconds, so that nothing is rounded; event_start() parses it.
create or replace function jobq_private.event_cursor(at timestamptz, job_id uuid)
returns text language sql immutable as $$
    select (extract(epoch from event_cursor.at) * 1000000)::bigint || '_' || event_cursor.job_id
$$;
