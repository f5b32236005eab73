-- Purpose: Returns the log of a job, in order.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Example: select * from jobq_internal.list_logs(:'running');
create or replace function jobq_internal.list_logs(job_id uuid)
returns table (attempt integer, logged_at timestamptz, level text, message text) language plpgsql
stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq.get_job(list_logs.job_id);
    return query
    select l.attempt, l.logged_at, l.level, l.message
    from jobq_private.job_log as l
    where l.job_id = list_logs.job_id
    order by l.logged_at, l.sequence;
end
$$;
grant execute on function jobq_internal.list_logs to jobq_worker, jobq_operator, jobq_reader;
