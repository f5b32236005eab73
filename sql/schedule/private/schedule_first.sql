-- Purpose: the first slot of a schedule strictly after an instant, within its bounds.
-- Invariant: the slot is also after the last one, so none repeats if the clock was set back. An
-- interval counts from starts_at, else from its previous next slot, else from the instant.
-- Raises: 22023 for a zone that the server no longer has.
create or replace function jobq_private.schedule_first(
    schedule jobq_private.schedule, after timestamptz
)
returns timestamptz language plpgsql stable as $$
declare
    _after constant timestamptz := greatest(
        schedule_first.after, schedule.starts_at - interval '1 us', schedule.last_tick_at
    );
    _first constant timestamptz := jobq_private.schedule_next(
        schedule.parsed, schedule.every,
        coalesce(schedule.starts_at, schedule.next_run_at, _after), _after
    );
begin
    return case when _first < coalesce(schedule.ends_at, 'infinity') then _first end;
end
$$;
