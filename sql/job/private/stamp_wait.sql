-- Purpose: set what follows when a job stops running, ends, or moves in its queue.
-- Invariant: a job that comes back or moves goes behind those that are due already, because
-- claims have passed the places before them. A job without attempts left cannot wait, because
-- every claim would fail on it. Raises: JQ002.
create or replace function jobq_private.stamp_wait(
    before jobq_private.job, after jobq_private.job
)
returns jobq_private.job language plpgsql as $$
begin
    if after.state <> before.state then
        after.lease_expires_at := null;
        after.slot := null;
        after.reported_cost := null;
        after.waits_since := clock_timestamp();
        if after.state in ('queued', 'retrying') then
            after.claimed_at := null;
            after.worker := null;
            after.uncounted := before.uncounted
                + (after.state = 'queued' and before.state = 'running')::integer;
        end if;
    end if;
    if after.state in ('queued', 'retrying') and (
        after.state <> before.state
        or (after.queue, after.priority, after.run_at, after.due_at, after.key_id) is distinct from
        (before.queue, before.priority, before.run_at, before.due_at, before.key_id)
    ) then
        -- The lock of the row has given the transaction its number, so this is after that, as
        -- keep_hint() needs it.
        after.due_at := case
            when after.key_id is null then greatest(after.run_at, clock_timestamp())
        end;
    end if;
    if after.claimed_at is null and after.attempt - after.uncounted >= after.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are used; a waiting job needs one',
            before.job_id, after.attempt - after.uncounted, after.max_attempts
        ));
    end if;
    return after;
end
$$;
