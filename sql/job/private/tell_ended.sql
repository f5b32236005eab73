-- Purpose: notify clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: jobs share 1024 locks, so some notifications are needless. A client that begins to
-- wait at this moment may get none, so clients also poll; see docs/protocol.md.
create or replace function jobq_private.tell_ended(job_ids uuid[])
returns void language plpgsql as $$
declare
    _job_id uuid;
begin
    if jobq_private.is_locked('awaiting_events', 0) then
        perform jobq_private.notify('jobq_events', '');
    end if;
    foreach _job_id in array tell_ended.job_ids loop
        if jobq_private.is_locked('ending', hashtext(_job_id::text) & 1023) then
            perform jobq_private.notify('jobq_ended', _job_id::text);
        end if;
    end loop;
end
$$;
