-- Purpose: Leases jobs whose kinds are functions that the login may run.
-- Invariant: SKIP LOCKED. Claims only functions that the login may execute and whose
-- owner it trusts: itself, the owner of the database, or a superuser. So nobody who can
-- declare a kind can run code as another login. Jobs under a limit lock the limit
-- until the commit, so nobody else starts jobs there. Raises: 22004, 22023.
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
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _kinds text[];
    _batches text[];
begin
    select coalesce(array_agg(k.kind), '{}'), array_agg(k.kind) filter (where f.is_batch)
    into _kinds, _batches
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function(k.run) as f
    where f.may_execute and jobq_private.is_trusted(f.owner, session_user);

    return query
    select
        c.job_id, c.attempt, c.kind, c.payload, parse_ident(k.run),
        coalesce(k.kind = any(_batches), false), coalesce(k.retry_on, '{08,40,53,55,57}')
    from jobq.claim(
        claim_calls.queues, session_user, claim_calls.max_jobs, kinds => _kinds
    ) with ordinality as c
    join jobq_private.kind as k on k.kind = c.kind
    order by c.ordinality;
end
$$;

grant execute on function jobq_internal.claim_calls to jobq_worker;
