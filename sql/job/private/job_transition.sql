-- Purpose: derive everything that follows from a change of state, whoever makes it.
-- Invariant: previous_state, its lane and the lease are stamped here; a claim stamps them itself,
-- and passes when all is as it would be here; where only its time is not, as when the clock was
-- put back, that is stamped again. The delivery to a paused endpoint does not begin, which
-- park_delivery() puts aside; a lease moves only with a change of state or a heartbeat, and never past claimed_at +
-- timeout + lease, so that a frozen worker cannot renew for ever. A claim has looked at the
-- limits, and says so by giving no lane; for whoever starts a job otherwise this
-- looks. No lane stays with a claim that was compared here, from queued or retrying: its change
-- is legal, and the foreign key need not look it up. A job that has expired dies instead of starting, whoever claims it. None waits whose
-- attempts are spent: it would break each claim that tries. Raises: JQ002, JQ011.
create or replace function jobq_private.stamp_transition()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_by_hand boolean;
begin
    if new.state = 'running' and new.lane is null and old.state in ('queued', 'retrying')
        and new.attempt = old.attempt + 1
        and new.previous_state = old.state
        and new.lease_expires_at = new.claimed_at + old.lease
        and new.uncounted = old.uncounted
        and new.worker is not null and new.heartbeat_at is null
    then
        if new.claimed_at between statement_timestamp() and clock_timestamp()
            and old.expires_at is null and old.delivery_version is null
        then
            return new;
        end if;
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
            'job_id %s: previous_state, attempt and lease follow from the state', old.job_id
        ));
    end if;

    if new.state = 'running' and old.expires_at <= clock_timestamp() then
        new.state := 'dead';
        new.last_error_code := 'EXPIRED';
        new.last_error := 'it could not start before ' || old.expires_at;
        new.last_error_details := null;
    end if;

    if new.state = 'running' and old.state <> 'running'
        and old.delivery_version is not null
        and jobq_private.park_delivery(old.job_id, old.kind, old.run_at)
    then
        return null;
    elsif new.state <> old.state then
        _is_by_hand := new.state = 'running' and new.lane is not null;
        new.previous_state := old.state;
        new.lane := (pg_backend_pid() & 1023)::smallint;
        new.heartbeat_at := null;
        new.lease_expires_at := null;
        if new.state <> 'running' then
            new.place := null;
            new.waits_since := clock_timestamp();
        elsif _is_by_hand then
            new.place := jobq_private.take_place(new);
        end if;
        if new.state = 'running' then
            new.attempt := old.attempt + 1;
            new.claimed_at := clock_timestamp();
            new.worker := coalesce(new.worker, session_user);
            new.lease_expires_at := new.claimed_at + old.lease;
            if _is_by_hand then
                perform jobq_private.charge_job(new);
            end if;
        elsif new.state in ('queued', 'retrying') then
            new.claimed_at := null;
            new.worker := null;
            new.uncounted := old.uncounted
                + (new.state = 'queued' and old.state = 'running')::integer;
        end if;
    elsif (new.place is distinct from old.place and old.place is not null)
        or (new.lane is null and old.lane is not null)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: place and lane follow from the state', old.job_id
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
            'job_id %s: worker and heartbeat follow from the state', old.job_id
        ));
    end if;
    if new.claimed_at is null and new.attempt - new.uncounted >= new.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are spent: it cannot wait for another',
            old.job_id, new.attempt - new.uncounted, new.max_attempts
        ));
    end if;
    return new;
end
$$;

revoke all on function jobq_private.stamp_transition from public;

comment on function jobq_private.stamp_transition is
'Stamps the previous state, the attempt and the lease of a job that changes its state.';

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.stamp_transition();
