-- Purpose: a schedule by name or id, held by this transaction so that it can be
-- changed.
-- Invariant: a name yields its newest version, also when another transaction makes one
-- while this one waits: whoever makes one holds the row of the version before it.
-- Raises: 22004, JQ007.
create or replace function jobq_private.schedule_hold(schedule text)
returns jobq_private.schedule
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
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
    return _held;
end
$$;

revoke all on function jobq_private.schedule_hold from public;

comment on function jobq_private.schedule_hold is
'Returns a schedule by name or id, held by this transaction.';
