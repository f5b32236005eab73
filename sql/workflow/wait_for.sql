-- Purpose: a handler waits for an event, or for a signal to its job of that name.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting': then the job
-- has been given back, its attempt not counted, and the handler must end; the job is due
-- again when the event comes, at the latest after timeout, which counts from the first
-- call. The attempt that then runs calls again and is told. While an emit is under way that
-- could miss it, the job looks again after a quarter of a second. A transaction with one
-- snapshot cannot see what was emitted since: it leaves a row for maintain(), which looks.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument timeout: how long at most, from the first call; up to 36500 days; null means that
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: what came with the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
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
        insert into jobq_private.waiter as w (job_id, event, deadline)
        values (
            wait_for.job_id, wait_for.event,
            clock_timestamp() + coalesce(wait_for.timeout, interval '36500 days')
        )
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline into _due;
        if current_setting('transaction_isolation') <> 'read committed' then
            insert into jobq_private.late_event (event, job_id)
            values (wait_for.event, wait_for.job_id);
        end if;
        if not pg_try_advisory_xact_lock(_emitting, hashtext(wait_for.event) & 1023) then
            _due := least(_due, clock_timestamp() + interval '0.25 s');
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

revoke all on function jobq.wait_for from public;
grant execute on function jobq.wait_for to jobq_worker;

comment on function jobq.wait_for is
'Waits for an event or a signal: what has come, or that the job has been given back until it comes.';
