-- Purpose: a job that has gone back among the live ones leaves the archive.
-- Invariant: see archive_redrive. Raises: nothing.
create or replace function jobq_private.leave_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from jobq_private.job_archive as a
    where a.job_id = new.job_id and a.finished_at = new.finished_at;
    return null;
end
$$;

revoke all on function jobq_private.leave_archive from public;

comment on function jobq_private.leave_archive is
'Takes a job that was redriven out of the archive.';

create or replace trigger archive_leave
after update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.leave_archive();
