-- Purpose: lock a schedule by name or id, to change it.
-- Invariant: a name returns the newest version, even if another transaction creates one during
-- the wait: it holds the row of the previous version. Raises: 22004, JQ002, JQ007.
create or replace function jobq_private.schedule_hold(
    schedule text, may_be_retired boolean default false
)
returns jobq_private.schedule language plpgsql as $$
declare
    _found jobq_private.schedule;
    _held jobq_private.schedule;
begin
    loop
        _found := jobq_private.schedule_find(schedule_hold.schedule);
        exit when _found.schedule_id = _held.schedule_id;
        select s.* into _held
        from jobq_private.schedule as s
        where s.schedule_id = _found.schedule_id
        for no key update;
    end loop;
    perform jobq_private.check_problem('SCHEDULE_RETIRED', case
        when _held.status = 'retired' and not may_be_retired
        then format('schedule %s, version %s', _held.name, _held.version)
    end);
    return _held;
end
$$;
