-- Purpose: Ends many attempts as failed, and returns the new state of each, null if the lease was
-- lost.
-- Invariant: a stale attempt changes nothing. Raises: 22004, 22023.
-- Members failures: fail
-- Column state: the new state: retrying, dead or cancelled; null if the attempt has lost its
-- lease.
-- Example: select * from jobq.fail_many(jsonb_build_array(jsonb_build_object(
--     'job_id', :'running', 'attempt', 1, 'error', 'no such user', 'retryable', false)));
create or replace function jobq.fail_many(failures jsonb)
returns table (job_id uuid, attempt integer, state text) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _failures constant jobq_private.failure[] :=
        jobq_private.read_failures(fail_many.failures);
begin
    return query
    select f.job_id, f.attempt, s.state
    from unnest(_failures) with ordinality
        as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
    left join jobq_private.settle_failures(_failures) as s
        on s.job_id = f.job_id and s.attempt = f.attempt
    order by f.n;
end
$$;
grant execute on function jobq.fail_many to jobq_worker;
