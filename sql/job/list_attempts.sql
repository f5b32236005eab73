-- Purpose: the attempts of one job, in their order.
-- Invariant: one row for each attempt. Raises: 22004, JQ001.
-- Returns: rows of jobq.attempt.
-- Example: select attempt, state, error from jobq.list_attempts(:'dead');
create or replace function jobq.list_attempts(job_id uuid)
returns setof jobq.attempt
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq.get_job(list_attempts.job_id);
    return query
    select t.*
    from jobq.attempt as t
    where t.job_id = list_attempts.job_id
    order by t.attempt;
end
$$;

revoke all on function jobq.list_attempts from public;
grant execute on function jobq.list_attempts to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_attempts is
'Returns the attempts of one job, in their order.';
