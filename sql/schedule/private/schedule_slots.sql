-- Purpose: the slots of a due schedule that fire now, and the next slot after them.
-- Invariant: at most max_slots. The next slot is counted from the slot that fires, not
-- from now, so a schedule with many missed slots catches up call by call. Policy none
-- is latest with a short catch-up window. Takes columns and not the row, to avoid
-- reading the payload. Returns, rather than raises, that the server no longer has a
-- zone, so that one schedule does not stop the others.
create or replace function jobq_private.schedule_slots(
    cron jobq_private.cron, every interval, missed text, catch_up interval, ends_at timestamptz,
    due_at timestamptz, until timestamptz, max_slots integer, out slots timestamptz[],
    out next_run_at timestamptz, out problem text
)
language plpgsql stable as $$
declare
    _end constant timestamptz := coalesce(schedule_slots.ends_at, 'infinity');
    _latest constant timestamptz := least(until, _end - interval '1 us');
    _oldest constant timestamptz := coalesce(until - catch_up, '-infinity');
begin
    slots := '{}';
    next_run_at := due_at;
    -- The latest slot; the cost does not grow with the number of missed slots.
    if missed <> 'all' and every is null then
        next_run_at := coalesce(
            jobq_private.cron_last(cron, due_at, _latest), due_at
        );
    elsif missed <> 'all' then
        next_run_at := due_at + every * floor(
            extract(epoch from _latest - due_at) / extract(epoch from every)
        )::double precision;
    end if;
    if next_run_at < _oldest then
        next_run_at := jobq_private.schedule_next(
            cron, every, next_run_at, case
                when missed = 'all' then _oldest - interval '1 us' else until
            end
        );
    end if;
    while next_run_at <= until and next_run_at < _end
        and cardinality(slots) < max_slots
    loop
        slots := slots || next_run_at;
        next_run_at := jobq_private.schedule_next(cron, every, next_run_at, next_run_at);
    end loop;
    next_run_at := case when next_run_at < _end then next_run_at end;
exception
    when invalid_parameter_value then
        slots := '{}';
        next_run_at := due_at;
        problem := sqlerrm;
end
$$;
