-- Purpose: set everything that follows from a change of state: previous_state, attempt, lease.
-- Invariant: each change sets previous_state and the session's slot, so the foreign key checks
-- it. A claim sets these columns itself; only the time is corrected if the clock was set back.
-- on_claim() checks the limits of other starts. A lease changes only with the state or a
-- heartbeat, and never exceeds claimed_at + timeout + lease, so a frozen worker cannot renew it
-- forever. An expired job dies instead of starting. A job without attempts left cannot wait,
-- because every claim would fail on it. Raises: JQ002, JQ011.
create or replace function jobq_private.stamp_transition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_claim boolean := false;
    _turn jobq_private.claim_turn;
begin
    if new.state = 'running' and old.state in ('queued', 'retrying')
        and new.attempt = old.attempt + 1
        and new.previous_state = old.state
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

    if new.previous_state is distinct from old.previous_state
        or new.attempt <> old.attempt
        or new.uncounted <> old.uncounted
        or new.lease_expires_at is distinct from old.lease_expires_at
        or new.claimed_at is distinct from old.claimed_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: previous_state, attempt and lease are set by the change of state', old.job_id
        ));
    end if;
    new.transition_slot := old.transition_slot;

    if new.state = 'running' and old.expires_at <= clock_timestamp() then
        new.state := 'dead';
        new.last_error_code := 'EXPIRED';
        new.last_error := 'it did not start before ' || old.expires_at;
        new.last_error_details := null;
    end if;

    if new.state = 'running' and old.state <> 'running'
        and (not _is_claim or old.delivery_version is not null)
    then
        _turn := jobq_private.on_claim(
            new.queue, new.worker, (not _is_claim)::integer, null, null, false, new
        );
        if _turn.found = '{}' then
            return null;
        elsif not _is_claim then
            new.place := _turn.place;
        end if;
    end if;

    if new.state <> old.state then
        new.previous_state := old.state;
        new.transition_slot := pg_backend_pid() & 1023;
        new.heartbeat_at := null;
        new.lease_expires_at := null;
        if new.state <> 'running' then
            new.place := null;
            new.waits_since := clock_timestamp();
        end if;
        if new.state = 'running' then
            new.attempt := old.attempt + 1;
            new.claimed_at := coalesce(_turn.started_at, clock_timestamp());
            new.worker := coalesce(new.worker, session_user);
            new.lease_expires_at := new.claimed_at + old.lease;
        elsif new.state in ('queued', 'retrying') then
            new.claimed_at := null;
            new.worker := null;
            new.uncounted := old.uncounted
                + (new.state = 'queued' and old.state = 'running')::integer;
        end if;
    elsif new.place is distinct from old.place and old.place is not null then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: place is set by the change of state', old.job_id
        ));
    elsif new.heartbeat_at is distinct from old.heartbeat_at and new.state = 'running' then
        new.heartbeat_at := clock_timestamp();
        new.lease_expires_at := greatest(
            old.lease_expires_at,
            least(
                new.heartbeat_at + old.lease, old.claimed_at + old.timeout + old.lease
            )
        );
    elsif new.worker is distinct from old.worker
        or new.heartbeat_at is distinct from old.heartbeat_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: worker and heartbeat are set by the change of state', old.job_id
        ));
    end if;
    if new.state in ('queued', 'retrying') and (
        new.state <> old.state
        or (new.queue, new.priority, new.run_at, new.due_at, new.lane_id)
        is distinct from (old.queue, old.priority, old.run_at, old.due_at, old.lane_id)
    ) then
        -- It goes behind those that are due already: claims have passed the places before them.
        new.due_at := case
            when new.lane_id is null then greatest(new.run_at, clock_timestamp())
        end;
    end if;
    if new.claimed_at is null and new.attempt - new.uncounted >= new.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are used; a waiting job needs one',
            old.job_id, new.attempt - new.uncounted, new.max_attempts
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.stamp_transition();
