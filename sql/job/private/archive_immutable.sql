-- Purpose: refuse changes of finished jobs. Only dead and cancelled jobs can return, and prune_at
-- can change. Raises: JQ002.
create or replace function jobq_private.archive_immutable()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _kept jobq_private.job_archive := new;
begin
    _kept.state := old.state;
    _kept.prune_at := old.prune_at;
    -- One of state and prune_at changes, and nothing else.
    if _kept is distinct from old or (new.state = old.state) = (
        new.prune_at is not distinct from old.prune_at
    ) then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s is finished: %s', old.job_id, old.state
        ));
    end if;
    if new.state = old.state then
        return new;
    end if;
    if new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled') then
        -- The job leaves the archive, or stays as it is: no row is updated.
        perform jobq_private.redrive_jobs(
            array[old.job_id], array[old.finished_at], target => new.state
        );
        return null;
    end if;
    -- The foreign key refuses it.
    new.previous_state := old.state;
    new.transition_slot := (pg_backend_pid() & 1023)::smallint;
    return new;
end
$$;

create or replace trigger archive_immutable
before update on jobq_private.job_archive
for each row execute function jobq_private.archive_immutable();
