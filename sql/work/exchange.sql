-- Purpose: finish a batch and claim the next, in one call and one commit.
-- Invariant: completed and failed attempts are settled before the claim, so that what
-- they free can be claimed.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: at most so many new jobs, 0 to 10000.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost for an attempt that no longer held its job. Attempts that succeeded
-- have no row.
-- Column attempt: of a claimed job the attempt that begins, else that which was
-- settled.
-- Example: select outcome, job_id, payload from jobq.exchange('{default}', 'worker-1', 10, array[:'running'::uuid], '{1}');
create or replace function jobq.exchange(
    queues text[],
    worker text,
    max_jobs integer,
    job_ids uuid[] default '{}',
    attempts integer[] default '{}',
    results jsonb default null,
    failures jsonb default null
)
returns table (
    outcome text,
    job_id uuid,
    attempt integer,
    kind text,
    payload jsonb,
    metadata jsonb,
    queue text,
    max_attempts integer,
    timeout interval,
    lease_expires_at timestamptz,
    run_at timestamptz,
    created_at timestamptz,
    idempotency_key text,
    lease interval,
    delivery_version integer
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lost bigint[];
begin
    if (exchange.job_ids, exchange.attempts) is distinct from ('{}'::uuid[], '{}'::integer[])
    then
        _lost := jobq_private.settle_successes(
            exchange.job_ids, exchange.attempts, exchange.results
        );
    end if;
    if _lost is not null then
        return query
        select 'lost', l.*
        from unnest(_lost) as n
        cross join lateral jobq_private.lost_job(
            exchange.job_ids[n], exchange.attempts[n]
        ) as l;
    end if;
    if exchange.failures is not null then
        return query
        select coalesce(f.state, 'lost'), l.*
        from jobq.fail_many(exchange.failures) as f
        cross join lateral jobq_private.lost_job(f.job_id, f.attempt) as l;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(exchange.queues, exchange.worker, exchange.max_jobs) as c;
end
$$;

revoke all on function jobq.exchange from public;
grant execute on function jobq.exchange to jobq_worker;

comment on function jobq.exchange is
'Finishes a batch and claims the next, in one call and one commit.';
