-- Purpose: Returns one execution as a JSON document.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Argument execution_id: the id of the execution, which is its job's id.
-- Members return: execution_document
-- Returns: a JSON object.
-- Example: select jobq_http.show_execution(:'running');
create or replace function jobq_http.show_execution(execution_id uuid)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.execution_document(jobq.get_job(show_execution.execution_id));
end
$$;

grant execute on function jobq_http.show_execution
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
