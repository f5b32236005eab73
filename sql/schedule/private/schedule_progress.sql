-- Purpose: a schedule only moves forward: its last slot grows, and a retired version
-- stays retired.
-- Invariant: together with the check that next_run_at is after last_tick_at, no writer
-- can make a slot fire again. A retired row gets the id of its successor once.
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
