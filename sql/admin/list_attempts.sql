-- Purpose: Returns the attempts of a job, in order.
-- Invariant: one row for each attempt. Raises: 22004, JQ001.
-- Returns: rows of jobq.attempt.
-- Example: select attempt, state, error from jobq_internal.list_attempts(:'dead');
create or replace function jobq_internal.list_attempts(job_id uuid)
returns setof jobq.attempt language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq.get_job(list_attempts.job_id);
    return query
    select t.*
    from jobq.attempt as t
    where t.job_id = list_attempts.job_id
    order by t.attempt;
end
$$;
grant execute on function jobq_internal.list_attempts to jobq_worker, jobq_operator, jobq_reader;
