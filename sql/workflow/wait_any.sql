-- Purpose: Waits for the first of several events: returns which has arrived, or that the
-- job was returned to its queue until one arrives.
-- Invariant: as wait_for(). The result is recorded under the name, so that every later attempt
-- gets the same event. The job no longer waits for the others, which stay for other waits. Of
-- several that have arrived, the earliest one is returned. Raises: 22004, 22023, JQ001, JQ003.
-- Argument name: the name of the wait, 1 to 256 characters, unique within the job
-- Argument events: 1 to 100 events or signals; job_ended:ID is the end of a called job, and
-- message:ID:NAME:000000001 the first message of a name to the job with this id
-- Argument timeout: maximum waiting time from the first call; up to 36500 days, the default
-- Column event: the one that has arrived; null for none
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: the payload of the event
-- Example: select * from jobq.wait_any(:'running', 1, 'answer', '{approval,withdrawn}', '1 hour');
create or replace function jobq.wait_any(
    job_id uuid, attempt integer, name text, events text[], timeout interval default null,
    out event text, out outcome text, out payload jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _end constant jsonb := jobq_private.wait_events(
        wait_any.job_id, wait_any.attempt, wait_any.name, wait_any.events, wait_any.timeout
    );
begin
    event := _end ->> 'event';
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
end
$$;
grant execute on function jobq.wait_any to jobq_worker;
