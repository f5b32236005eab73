-- Purpose: Returns the results of the steps of a job, in order.
-- Invariant: includes results of wait_for(), with names that begin with event:. Raises:
-- 22004, JQ001.
-- Column name: the step's name
-- Column value: the result of the step
-- Column attempt: the attempt that saved it
-- Column saved_at: when
-- Example: select * from jobq.list_steps(:'running');
create or replace function jobq.list_steps(job_id uuid)
returns table (name text, value jsonb, attempt integer, saved_at timestamptz) language plpgsql
stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_steps.job_id);
    return query
    select s.name, s.value, s.attempt, s.saved_at
    from jobq_private.step as s
    where s.job_id = list_steps.job_id
    order by s.saved_at, s.name;
end
$$;
grant execute on function jobq.list_steps to jobq_worker, jobq_operator, jobq_reader;
