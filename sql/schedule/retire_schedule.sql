-- Purpose: Ends a schedule permanently. Existing jobs continue.
-- Invariant: it never fires again; its jobs continue, and its history stays. Its name
-- can be declared again. Retiring it twice changes nothing.
-- Raises: 22004, JQ007. Never: SCHEDULE_RETIRED.
-- Example: select jobq.retire_schedule('weekly summary');
create or replace function jobq.retire_schedule(schedule text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(
        retire_schedule.schedule, may_be_retired => true
    );
begin
    update jobq_private.schedule as s
    set
        status = 'retired', retired_at = now(), next_run_at = null,
        awaited_job_id = null
    where s.schedule_id = _held.schedule_id and s.status <> 'retired';
    if found then
        perform jobq_private.record_audit('retire_schedule', _held.name);
    end if;
end
$$;
grant execute on function jobq.retire_schedule to jobq_producer, jobq_operator;
