-- Purpose: Pauses a schedule until it is resumed.
-- Invariant: its existing jobs continue; pausing a paused schedule changes nothing.
-- Raises: 22004, JQ002, JQ007.
-- Example: select jobq.pause_schedule('weekly summary', 'nobody reads it in August');
create or replace function jobq.pause_schedule(schedule text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(pause_schedule.schedule);
begin
    update jobq_private.schedule as s
    set
        status = 'paused', paused_at = now(),
        pause_reason = left(pause_schedule.reason, 512)
    where s.schedule_id = _held.schedule_id and s.status = 'active';
    if found then
        perform jobq_private.record_audit(
            'pause_schedule', _held.name, left(pause_schedule.reason, 512)
        );
    end if;
end
$$;
grant execute on function jobq.pause_schedule to jobq_operator;
