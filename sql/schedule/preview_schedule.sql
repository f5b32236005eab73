-- Purpose: Returns the next times of a schedule, also in local time.
-- Invariant: for from_completion, only the next slot is known; for a paused schedule,
-- the slots as if it were resumed now; for a retired one, none. Jitter is not included.
-- Raises: 22004, 22023, JQ007.
-- Example: select * from jobq_internal.preview_schedule('weekly summary', 3);
create or replace function jobq_internal.preview_schedule(schedule text, ticks integer default 5)
returns table (slot_at timestamptz, local_time timestamp) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        preview_schedule.schedule
    );
begin
    perform jobq_private.check_count('ticks', ticks, 1, 1000);
    slot_at := case _found.status
        when 'active' then _found.next_run_at
        when 'paused' then jobq_private.schedule_first(_found, now())
    end;
    for _tick in 1 .. ticks loop
        exit when not coalesce(slot_at < coalesce(_found.ends_at, '9999-01-01 UTC'), false);
        local_time := slot_at at time zone _found.time_zone;
        return next;
        exit when _found.from_completion;
        slot_at := jobq_private.schedule_next(_found.parsed, _found.every, slot_at, slot_at);
    end loop;
end
$$;
grant execute on function jobq_internal.preview_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
