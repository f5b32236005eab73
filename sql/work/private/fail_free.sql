-- Purpose: report failed attempts, but of jobs that another transaction holds.
-- Invariant: waits for nobody. Returns the outcome of each: held for those. Raises: 22004, 22023.
create or replace function jobq_private.fail_free(failures jsonb)
returns table (outcome text, job_id uuid, attempt integer)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _held uuid[];
begin
    select jobq_private.held_jobs(
        array_agg((f.failure ->> 'job_id')::uuid),
        array_agg((f.failure ->> 'attempt')::integer)
    ) into _held
    from jsonb_path_query(fail_free.failures, '$[*] ? (@.type() == "object")') as f (failure);
    if cardinality(_held) > 0 then
        return query
        select 'held', f.job_id, f.attempt
        from jsonb_populate_recordset(null::jobq_private.failure, fail_free.failures) as f
        where f.job_id = any(_held);
    end if;
    return query
    select coalesce(f.state, 'lost'), f.job_id, f.attempt
    from jobq.fail_many(
        case when cardinality(_held) = 0 then fail_free.failures else (
            select coalesce(jsonb_agg(f.failure), '[]')
            from jsonb_array_elements(fail_free.failures) as f (failure)
            where (f.failure ->> 'job_id')::uuid <> all(_held)
        ) end
    ) as f;
end
$$;

revoke all on function jobq_private.fail_free from public;

comment on function jobq_private.fail_free is
'Reports failed attempts, but of jobs that another transaction holds.';
