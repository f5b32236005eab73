-- Purpose: Returns the next times of a schedule, in local time, as a document.
-- Invariant: as preview_schedule(). Raises: 22004, JQ007. Never: INVALID_ARGUMENT.
-- Argument schedule_id: id of the version.
-- Returns: an object, with the array slots.
-- Example: select jobq_http.preview_slots(:'schedule');
create or replace function jobq_http.preview_slots(schedule_id uuid)
returns json language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select json_build_object('slots', coalesce(json_agg(
        jobq_private.moment_in(p.slot_at, s.time_zone) order by p.slot_at
    ), '[]'))
    from jobq_internal.preview_schedule(preview_slots.schedule_id::text) as p
    cross join jobq_private.schedule_find(preview_slots.schedule_id::text) as s
$$;
grant execute on function jobq_http.preview_slots
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
