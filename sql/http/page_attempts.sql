-- Purpose: Returns a page of the attempts of a job as JSON documents, in order.
-- Invariant: each attempt once; the next page starts after the number of the last one.
-- Raises: 22004, 22023, JQ001.
-- Argument after: only attempts with a higher number; null for the first page.
-- Argument max_attempts: maximum number, 1 to 1000.
-- Members item: page_attempts
-- Example: select * from jobq_http.page_attempts(:'dead');
create or replace function jobq_http.page_attempts(
    job_id uuid, after integer default null, max_attempts integer default 50
)
returns table (item json, cursor integer) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_count('max_attempts', page_attempts.max_attempts, 1, 1000);
    return query
    select
        json_build_object(
            'attempt_id', t.job_id || ':' || t.attempt, 'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'status', case t.state
                when 'succeeded' then 'SUCCESS'
                when 'running' then 'RUNNING'
                when 'cancelled' then 'CANCELLED'
                when 'queued' then 'RELEASED'
                else 'FAILED'
            end,
            'worker_id', t.worker, 'created_at', t.started_at, 'started_at', t.started_at,
            'completed_at', t.finished_at,
            'duration_ms', jobq_private.milliseconds(t.duration), 'output', t.result,
            'error', case
                when coalesce(t.error_code, t.error) is not null then
                    coalesce(t.error_details, '{}')
                    || jsonb_build_object('type', t.error_code, 'message', t.error)
            end
        ),
        case when lead(t.attempt) over (order by t.attempt) is not null then t.attempt end
    from jobq_internal.list_attempts(page_attempts.job_id) as t
    where t.attempt > coalesce(page_attempts.after, 0)
    order by t.attempt
    limit page_attempts.max_attempts;
end
$$;
grant execute on function jobq_http.page_attempts to jobq_worker, jobq_operator, jobq_reader;
