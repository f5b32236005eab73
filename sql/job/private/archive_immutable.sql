-- Purpose: a finished job is history: nothing of it changes, but dead and cancelled jobs
-- may go back to queued, and one that others need is kept longer.
-- Invariant: a change of state stamps previous_state and its lane, and the foreign key
-- decides; the rest of the row stays as it is. Raises: JQ002.
create or replace function jobq_private.guard_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq_private.job_archive := new;
begin
    _kept.state := old.state;
    _kept.prune_at := old.prune_at;
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
    new.previous_state := old.state;
    new.lane := (pg_backend_pid() & 1023)::smallint;
    return new;
end
$$;

revoke all on function jobq_private.guard_archive from public;

comment on function jobq_private.guard_archive is
'Refuses a change of a finished job, but for its redrive.';

create or replace trigger archive_immutable
before update on jobq_private.job_archive
for each row execute function jobq_private.guard_archive();
