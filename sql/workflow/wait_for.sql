-- Purpose: Waits for an event or a signal: returns what has arrived, or that the job
-- was returned to its queue until it arrives.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting'. After
-- 'waiting', the job has been released, its attempt does not count, and the handler
-- must end. The job is due when the event comes, at the latest after timeout, measured
-- from the first call. The next attempt repeats the call and gets the result.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument timeout: maximum waiting time from the first call; up to 36500 days, the default
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: the payload of the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _slot constant integer := hashtext(wait_for.event) & 1023;
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_event(wait_for.event, 'null');
    if wait_for.timeout < interval '0' or wait_for.timeout > interval '36500 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'timeout must be between 0 and 36500 days'
        );
    end if;
    perform from jobq_private.job as j
    where j.job_id = wait_for.job_id
    and j.attempt = wait_for.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(wait_for.job_id, wait_for.attempt);
    end if;

    _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    if _end is null then
        -- As in store_event(): an emit takes a lock of its own class, and one of the
        -- two sees the other.
        perform pg_advisory_xact_lock_shared(jobq_private.lock_class('expecting'), _slot);
        insert into jobq_private.waiter as w (job_id, event, deadline)
        values (
            wait_for.job_id, wait_for.event,
            clock_timestamp() + coalesce(wait_for.timeout, interval '36500 days')
        )
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline into _due;
        if jobq_private.is_held('emitting', _slot)
            or current_setting('transaction_isolation') <> 'read committed'
        then
            insert into jobq_private.pending (about, id, event)
            values ('event', wait_for.job_id, wait_for.event);
        end if;
        _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    end if;
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
    if _end is null then
        perform jobq.release(wait_for.job_id, wait_for.attempt, _due);
    end if;
end
$$;

grant execute on function jobq.wait_for to jobq_worker;
