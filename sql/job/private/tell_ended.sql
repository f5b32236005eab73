-- Purpose: tell the clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: one try-lock shows that nobody waits for any job; it is let go in the same
-- expression, between whose parts no cancel comes. Jobs share 1024 locks, so that a notification may be
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
    _ending constant integer := jobq_private.lock_class('ending');
    _any_job constant integer := 1024;
    _any_event constant integer := 1025;
    _job_id uuid;
    _slot integer;
begin
    if not (
        pg_try_advisory_lock(_ending, _any_job) and pg_advisory_unlock(_ending, _any_job)
    ) then
        if not (
            pg_try_advisory_lock(_ending, _any_event)
            and pg_advisory_unlock(_ending, _any_event)
        ) then
            perform jobq_private.notify('jobq_events', '');
        end if;
        foreach _job_id in array tell_ended.job_ids loop
            _slot := hashtext(_job_id::text) & 1023;
            if not (
                pg_try_advisory_lock(_ending, _slot) and pg_advisory_unlock(_ending, _slot)
            ) then
                perform jobq_private.notify('jobq_ended', _job_id::text);
            end if;
        end loop;
    end if;
end
$$;

revoke all on function jobq_private.tell_ended from public;

comment on function jobq_private.tell_ended is
'Notifies the clients that wait for these jobs at commit, and nobody when none waits.';
