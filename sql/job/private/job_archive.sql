-- Purpose: a live job that reaches a final state leaves for the archive.
-- Invariant: so `update … set state` is enough, for functions and for psql alike; the
-- foreign key has been checked before, by its name. The WHEN clause is short, since
-- PostgreSQL reads its text again for every statement. Raises: nothing of its own.
create or replace function jobq_private.archive_finished()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(
            array[new.job_id], array[new.attempt], new.state, null, false
        );
    end if;
    return null;
end
$$;

revoke all on function jobq_private.archive_finished from public;

comment on function jobq_private.archive_finished is
'Moves a job that reached a final state into the archive.';

create or replace trigger job_archive
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.archive_finished();
