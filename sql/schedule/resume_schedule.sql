-- Purpose: Resumes a paused schedule from its next slot.
-- Invariant: slots during the pause do not fire; an interval keeps its phase. Resuming a schedule
-- that is not paused changes nothing. Raises: 22004, 22023, JQ002, JQ007, JQ009.
-- Example: select jobq.resume_schedule('weekly summary');
create or replace function jobq.resume_schedule(schedule text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(resume_schedule.schedule);
begin
    if _held.status = 'active' then
        return;
    end if;
    perform jobq_private.cron_check(_held.time_zone, _held.gap, _held.fold);
    update jobq_private.schedule as s
    set status = 'active', paused_at = null, pause_reason = null
    where s.schedule_id = _held.schedule_id;
    -- its job may have ended during the pause
    perform jobq_private.schedule_follow(1, _held.schedule_id);
    update jobq_private.schedule as s
    set next_run_at = jobq_private.schedule_first(s, clock_timestamp())
    where s.schedule_id = _held.schedule_id and s.awaited_job_id is null
    -- a slot that counts from the end of a job stays
    and (s.from_completion is not true or s.next_run_at <= clock_timestamp());
    perform jobq_private.notify('jobq', '*');
    perform jobq_private.record_audit('resume_schedule', _held.name);
end
$$;
grant execute on function jobq.resume_schedule to jobq_operator;
