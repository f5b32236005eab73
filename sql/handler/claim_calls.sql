-- Purpose: Leases jobs whose kinds are functions that the login may run.
-- Invariant: SKIP LOCKED. Claims only functions that get_call() allows. Jobs under a limit lock
-- the limit until the commit, so nobody else starts jobs there. Raises: 22004, 22023.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Column run: the schema and the name of the function.
-- Column is_batch: whether the function takes the payloads of many jobs.
-- Column retry_on: the errors that are retried, by SQLSTATE or class.
-- Example: select * from jobq_internal.claim_calls('{default}', 10);
create or replace function jobq_internal.claim_calls(queues text[], max_jobs integer default 1)
returns table (
    job_id uuid, attempt integer, kind text, payload jsonb, run text[], is_batch boolean,
    retry_on text[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    return query
    with runnable as materialized (
        select k.kind, g.run, g.is_batch, g.retry_on
        from jobq_private.kind as k
        cross join lateral jobq_internal.get_call(k.kind) as g
        where k.run is not null
        and g.may_run
    )
    select c.job_id, c.attempt, c.kind, c.payload, r.run, r.is_batch, r.retry_on
    from jobq.claim(
        claim_calls.queues, session_user, claim_calls.max_jobs,
        kinds => array(select r.kind from runnable as r)
    ) with ordinality as c
    left join runnable as r on r.kind = c.kind  -- left: so that queues are always checked
    order by c.ordinality;
end
$$;
grant execute on function jobq_internal.claim_calls to jobq_worker;
