-- Purpose: Returns the results of the steps of many running jobs.
-- Invariant: leaves out attempts that have lost their leases. Raises: 22004, 22023.
-- Column name: the step's name; null in the only row of a job without steps
-- Column value: the result of the step
-- Example: select * from jobq_internal.read_steps(array[:'running']::uuid[], '{1}');
create or replace function jobq_internal.read_steps(job_ids uuid[], attempts integer[])
returns table (job_id uuid, name text, value jsonb) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off as $$
#variable_conflict use_column
begin
    perform jobq_private.check_attempts(read_steps.job_ids, read_steps.attempts);
    return query
    select j.job_id, s.name, s.value
    from unnest(read_steps.job_ids, read_steps.attempts) as i (job_id, attempt)
    join jobq_private.job as j
        on j.job_id = i.job_id and j.attempt = i.attempt and j.lease_expires_at is not null
    left join jobq_private.step as s on s.job_id = j.job_id
    -- by the index, whatever the statistics say
    where j.job_id = any(read_steps.job_ids);
end
$$;
grant execute on function jobq_internal.read_steps to jobq_worker;
