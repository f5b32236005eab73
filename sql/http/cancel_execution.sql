-- Purpose: Cancels a waiting execution and returns it, or null if it is too late.
-- Invariant: the row lock decides between this and claim; the second one sees the result of the
-- first. Raises: 22004, 22023, JQ001.
-- Returns: the execution as show_execution() returns it; null if it runs or has ended.
-- Example: select jobq_http.cancel_execution(:'waiting', 'ordered twice');
create or replace function jobq_http.cancel_execution(execution_id uuid, reason text default null)
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform
    from jobq_private.job as j
    where j.job_id = cancel_execution.execution_id
    and j.state in ('blocked', 'queued', 'retrying')
    for update;
    if found then
        perform jobq.cancel(cancel_execution.execution_id, cancel_execution.reason);
        return jobq_http.show_execution(cancel_execution.execution_id);
    end if;
    perform jobq.get_job(cancel_execution.execution_id);
    return null;
end
$$;
grant execute on function jobq_http.cancel_execution to jobq_producer, jobq_operator;
