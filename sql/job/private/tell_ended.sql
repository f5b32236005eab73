-- Purpose: tell the clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: who ends jobs calls it only where somebody waits for some job: one lock shows
-- that. Jobs share 1024 locks, so that a notification may be
-- needless. A completion that looked before a client announced itself tells it nothing:
-- clients look by themselves too. docs/wake-ups.md says more. Raises: nothing.
create or replace function jobq_private.tell_ended(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _job_id uuid;
begin
    if jobq_private.is_held('awaiting_events', 0) then
        perform jobq_private.notify('jobq_events', '');
    end if;
    foreach _job_id in array tell_ended.job_ids loop
        if jobq_private.is_held('ending', hashtext(_job_id::text) & 1023) then
            perform jobq_private.notify('jobq_ended', _job_id::text);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.tell_ended from public;

comment on function jobq_private.tell_ended is
'Notifies the clients that wait for these jobs at commit, and nobody when none waits.';
