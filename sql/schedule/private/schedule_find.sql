-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version, which is the active one if there is one;
-- no name looks like an id. Raises: 22004, JQ007.
create or replace function jobq_private.schedule_find(schedule text)
returns jobq_private.schedule language plpgsql stable as $$
declare
    _found jobq_private.schedule;
begin
    perform jobq_private.check_given('schedule', num_nulls(schedule_find.schedule));
    if schedule_find.schedule ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select s.* into _found
        from jobq_private.schedule as s
        where s.schedule_id = schedule_find.schedule::uuid;
    else
        select s.* into _found
        from jobq_private.schedule as s
        where s.name = schedule_find.schedule
        order by s.version desc
        limit 1;
    end if;
    perform jobq_private.check_problem('SCHEDULE_NOT_FOUND', case
        when not found then 'schedule ' || left(schedule_find.schedule, 128)
    end);
    return _found;
end
$$;
