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
    _queue text;
    _look jobq_private.queue_look;
    _taken integer;
    _left integer := max_jobs;
begin
    perform jobq_private.check_claim(claim_calls.queues, session_user, claim_calls.max_jobs);
    perform jobq_private.resolve();
    select coalesce(array_agg(k.kind), '{}'), array_agg(k.kind) filter (where f.is_batch)
    into _kinds, _batches
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function(k.run) as f
    where f.may_execute and jobq_private.is_trusted(f.owner, session_user)
    and not exists (select from jobq_private.paused_kind as p where p.kind in (k.kind, '*'));

    foreach _queue in array jobq_private.match_queues(claim_calls.queues) loop
        exit when _left = 0;
        _look := jobq_private.enter_queue(_queue, clock_timestamp());
        continue when _look.is_paused;
        return query
        with called as materialized (
            select
                k.kind, parse_ident(k.run) as run,
                coalesce(k.retry_on, '{08,40,53,55,57}') as retry_on,
                coalesce(k.kind = any(_batches), false) as is_batch
            from jobq_private.kind as k
            where k.kind = any(_kinds)
        )
        select s.job_id, s.attempt, s.kind, s.payload, c.run, c.is_batch, c.retry_on
        from jobq_private.start_calls(
            _queue, _kinds, least(_left, _look.max_starts), _look
        ) with ordinality as s (job_id, attempt, kind, payload, n)
        join called as c on c.kind = s.kind
        order by s.n;
        get diagnostics _taken = row_count;
        _left := _left - _taken;
    end loop;
end
$$;

grant execute on function jobq_internal.claim_calls to jobq_worker;
