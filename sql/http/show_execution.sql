-- Purpose: Returns one execution as a JSON document.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Members return: execution_document
-- Returns: a JSON object.
-- Example: select jobq_http.show_execution(:'running');
create or replace function jobq_http.show_execution(execution_id uuid)
returns json language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jobq_private.execution_document(jobq.get_job(show_execution.execution_id))
$$;
grant execute on function jobq_http.show_execution
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
