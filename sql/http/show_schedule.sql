-- Purpose: Returns a schedule, by name or by the id of a version, as a JSON document.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Members return: schedule_document
-- Returns: a JSON object, with payload or input beside these.
-- Example: select jobq_http.show_schedule('weekly summary');
create or replace function jobq_http.show_schedule(schedule text, vocabulary text default null)
returns json language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jobq_private.schedule_document(
        jobq_private.schedule_find(show_schedule.schedule), show_schedule.vocabulary
    )
$$;
grant execute on function jobq_http.show_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
