-- Purpose: release jobs that wait for an event or signal, after an emit and a wait that
-- could not see each other. Returns true if nothing remains to be done.
-- Invariant: only when all transactions have ended that were emitting or waiting.
create or replace function jobq_private.settle_event(event text, job_id uuid)
returns boolean
language plpgsql
as $$
declare
    _slot constant integer := hashtext(settle_event.event) & 1023;
    -- Before reading the rows, so that these include the changes of such transactions.
    _is_over constant boolean := not jobq_private.is_held('emitting', _slot)
        and not jobq_private.is_held('expecting', _slot);
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
begin
    if not exists (
        select from jobq_private.event as e
        where e.event = settle_event.event and e.job_id in (settle_event.job_id, _all)
    ) then
        return _is_over;
    end if;
    return jobq_private.release_waiters(settle_event.event, settle_event.job_id) and _is_over;
end
$$;
