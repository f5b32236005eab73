-- Purpose: set everything that follows from a change of state: previous_state, attempt, lease.
-- Invariant: each change sets previous_state and the session's slot, so the foreign key checks
-- it. A lease changes only with the state or by a heartbeat, and never exceeds claimed_at +
-- timeout + lease, so a frozen worker cannot renew it forever. Raises: JQ002, JQ011.
create or replace function jobq_private.job_transition()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _is_claim boolean := false;
    _started jobq_private.job;
begin
    -- A claim has set these columns itself, and usually ends here. If the job can expire, is a
    -- delivery, or the clock was set back, they are put back, and stamp_start() sets them.
    if new.state = 'running' and old.state in ('queued', 'retrying')
        and new.attempt = old.attempt + 1 and new.previous_state = old.state
        and new.lease_expires_at = new.claimed_at + old.lease
        and new.uncounted = old.uncounted
        and new.worker is not null and new.heartbeat_at is null
    then
        if new.claimed_at between statement_timestamp() and clock_timestamp()
            and new.transition_slot = pg_backend_pid() & 1023
            and old.expires_at is null and old.delivery_version is null
        then
            return new;
        end if;
        _is_claim := true;
        new.attempt := old.attempt;
        new.previous_state := old.previous_state;
        new.claimed_at := old.claimed_at;
        new.lease_expires_at := old.lease_expires_at;
    end if;

    new.transition_slot := old.transition_slot;
    if new.previous_state is distinct from old.previous_state
        or new.attempt <> old.attempt or new.uncounted <> old.uncounted
        or new.lease_expires_at is distinct from old.lease_expires_at
        or new.claimed_at is distinct from old.claimed_at
        or new.state = old.state and (
            new.worker is distinct from old.worker
            or new.slot <> old.slot or new.slot is null and old.slot is not null
            or new.heartbeat_at is distinct from old.heartbeat_at and new.state <> 'running'
        )
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: previous_state, attempt, worker, lease and slot follow from the state',
            old.job_id
        ));
    end if;

    if new.state = 'running' and old.state <> 'running' then
        _started := jobq_private.stamp_start(new, _is_claim);
        if _started.job_id is null then
            return null;
        end if;
        new := _started;
    elsif new.heartbeat_at is distinct from old.heartbeat_at and new.state = 'running' then
        new.heartbeat_at := clock_timestamp();
        new.lease_expires_at := greatest(old.lease_expires_at, least(
            new.heartbeat_at + old.lease, old.claimed_at + old.timeout + old.lease
        ));
    end if;
    if new.state <> old.state then
        new.previous_state := old.state;
        new.transition_slot := pg_backend_pid() & 1023;
        new.heartbeat_at := null;
    end if;
    if new.state <> 'running' then
        new := jobq_private.stamp_wait(old, new);
    end if;
    return new;
end
$$;

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.job_transition();
