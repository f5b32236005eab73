-- Purpose: the slots of a schedule in a past span that have no job.
-- Invariant: excludes slots that tick() has yet to take; it takes none of a pause. A job of any
-- version of the schedule counts, live or archived. Raises: 22023.
create or replace function jobq_private.backfill_slots(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer
)
returns timestamptz[] language plpgsql stable as $$
declare
    _until constant timestamptz := least(
        backfill_slots.until, schedule.ends_at,
        case when schedule.status = 'active' then schedule.next_run_at end
    );
    _anchor constant timestamptz := coalesce(
        schedule.starts_at, schedule.next_run_at, schedule.last_tick_at, backfill_slots.since
    );
    _slot timestamptz := backfill_slots.since - interval '1 us';
    _slots timestamptz[] := '{}'::timestamptz[];
begin
    loop
        _slot := jobq_private.schedule_next(schedule.parsed, schedule.every, _anchor, _slot);
        exit when not coalesce(_slot < _until, false);
        perform jobq_private.check_argument(case
            when cardinality(_slots) = max_slots
            then format('the span has more than %s slots (max_slots)', max_slots)
        end);
        _slots := _slots || _slot;
    end loop;
    return array(
        select u.slot_at
        from unnest(_slots) as u (slot_at)
        where u.slot_at not in (
            select j.slot_at
            from jobq_private.schedule as s
            join jobq.job as j on j.schedule_id = s.schedule_id
            where s.name = schedule.name and j.slot_at = any(_slots)
        )
        order by u.slot_at
    );
end
$$;
