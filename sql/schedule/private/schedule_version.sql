-- Purpose: refuse to change the definition in a version of a schedule; a new version changes it.
-- Invariant: fires only for an UPDATE that names one of these columns, so a tick does
-- not pay for it. Raises: JQ002.
create or replace function jobq_private.refuse_schedule_change()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.raise_error('SCHEDULE_IMMUTABLE', format(
        'schedule %s, version %s', old.name, old.version
    ));
    return null;
end
$$;

create or replace trigger schedule_version
before update of
schedule_id, name, version, previous_version_id, kind, queue, payload, metadata,
priority, max_attempts, timeout, cron, parsed, every, from_completion, time_zone, gap,
fold, missed, catch_up, dedup, dedup_key, concurrency_key, graph, jitter, starts_at, ends_at, created_at
on jobq_private.schedule
for each row execute function jobq_private.refuse_schedule_change();

-- A schedule only moves forward: its last slot grows, and a retired version stays retired.
-- With the check that next_run_at is after last_tick_at, no writer can make a slot fire
-- again. A retired row gets the id of its successor once.
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
