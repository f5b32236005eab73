-- Purpose: release the jobs that wait for an event, or for a signal to one job, of which an emit
-- or a wait did not see the other. True when nothing is left to do.
-- Invariant: not before all transactions that emit or wait now have ended. Raises: nothing.
create or replace function jobq_private.settle_event(event text, job_id uuid)
returns boolean
language plpgsql
as $$
declare
    _slot constant integer := hashtext(settle_event.event) & 1023;
    -- Before the look at the rows, so that these show what such transactions have done.
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
