-- Purpose: Returns a number that changes when jobs, queues, schedules, workers or
-- endpoints change; reads no table.
-- Invariant: reads the server's statistics and a sequence, and no table; shows a change
-- within about a second. Raises: nothing.
-- Returns: how many rows were added, changed or deleted since the statistics began.
-- Example: select jobq_http.show_pulse();
create or replace function jobq_http.show_pulse()
returns bigint language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select sum(
        pg_stat_get_tuples_inserted(t.name::regclass)
        + pg_stat_get_tuples_updated(t.name::regclass)
        + pg_stat_get_tuples_deleted(t.name::regclass)
    )::bigint + coalesce(
        pg_sequence_last_value('jobq_private.job_log_sequence'::regclass), 0
    )
    from (
        values
        ('jobq_private.job'), ('jobq_private.queue'), ('jobq_private.key_limit'),
        ('jobq_private.schedule'), ('jobq_private.worker'), ('jobq_private.endpoint')
    ) as t (name)
$$;
grant execute on function jobq_http.show_pulse to jobq_operator, jobq_reader;
