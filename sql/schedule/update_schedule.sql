-- Purpose: Changes the given members of a schedule, and returns the id of the new version.
-- Invariant: changes is a JSON object with parameters of create_schedule(); omitted
-- members keep their values, and null restores the default. Passing cron removes every,
-- and the other way round. An update without changes creates no version.
-- Raises: 22004, 22023, 42501, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Members changes: create_schedule, but not name
-- Returns: the id of the new version, or of the old one if nothing changes.
-- Example: select jobq.update_schedule('weekly summary', '{"cron": "0 10 * * MON"}');
create or replace function jobq.update_schedule(schedule text, changes jsonb)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _set jobq_private.schedule := jobq_private.schedule_hold(update_schedule.schedule);
begin
    if update_schedule.changes ->> 'cron' is not null then
        _set.every := null;
        _set.from_completion := null;
    elsif update_schedule.changes ->> 'every' is not null then
        _set.cron := null;
    end if;
    return (jobq_private.schedule_declare(
        jobq_private.read_schedule(_set, 'changes', update_schedule.changes), false
    )).schedule_id;
end
$$;
grant execute on function jobq.update_schedule to jobq_producer, jobq_operator;
