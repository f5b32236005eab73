-- Purpose: Waits for an event or a signal: returns what has arrived, or that the job
-- was returned to its queue until it arrives.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting'. After 'waiting',
-- the job has been released, its attempt does not count, and the handler must end. The job is due
-- when the event comes, at the latest after timeout, measured from the first call. The next
-- attempt repeats the call and gets the result. Raises: 22004, 22023, JQ001, JQ003.
-- Argument timeout: maximum waiting time from the first call; up to 36500 days, the default
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: the payload of the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _end constant jsonb := jobq_private.wait_events(
        wait_for.job_id, wait_for.attempt, wait_for.event, array[wait_for.event],
        wait_for.timeout
    );
begin
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
end
$$;
grant execute on function jobq.wait_for to jobq_worker;
