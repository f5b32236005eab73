-- Purpose: a schedule only goes forward: its last slot grows, and what is retired stays
-- so.
-- Invariant: with the check that next_run_at lies behind last_tick_at, no slot can be
-- set to fire again, whoever asks. A retired row takes the id of its successor, once.
-- Raises: JQ002.
create or replace trigger schedule_progress
before update on jobq_private.schedule
for each row
when (
    new.last_tick_at is distinct from greatest(new.last_tick_at, old.last_tick_at)
    or (
        old.status = 'retired'
        and (new.status <> 'retired' or old.replaced_by_id is not null)
    )
)
execute function jobq_private.refuse_schedule_change();
