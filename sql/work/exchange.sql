-- Purpose: finish a batch and claim the next, in one call and one commit.
-- Invariant: completed and failed attempts are settled before the claim, so that what
-- they free can be claimed. A job that another open transaction has changed or locked holds
-- up none of the others: it comes back as held, and is settled by a later call.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: at most so many new jobs, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits; null means any number.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost for an attempt that no longer held its job; held where another
-- transaction holds it, to be settled again by a later call. Attempts that succeeded have
-- no row.
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
    failures jsonb default null,
    max_limited integer default null,
    except_kinds text[] default null
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
    delivery_version integer,
    is_awaited boolean
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
            exchange.job_ids, exchange.attempts, exchange.results, true
        );
    end if;
    if _lost is not null then
        return query
        select case when j.job_id is null then 'lost' else 'held' end, l.*
        from unnest(_lost) as n
        left join jobq_private.job as j
            on j.job_id = exchange.job_ids[n]
            and j.attempt = exchange.attempts[n]
            and j.lease_expires_at is not null
        cross join lateral jobq_private.lost_job(
            exchange.job_ids[n], exchange.attempts[n]
        ) as l;
    end if;
    if exchange.failures is not null then
        return query
        select f.outcome, l.*
        from jobq_private.fail_free(exchange.failures) as f
        cross join lateral jobq_private.lost_job(f.job_id, f.attempt) as l;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(
        exchange.queues, exchange.worker, exchange.max_jobs, exchange.max_limited,
        exchange.except_kinds
    ) as c;
end
$$;

revoke all on function jobq.exchange from public;
grant execute on function jobq.exchange to jobq_worker;

comment on function jobq.exchange is
'Finishes a batch and claims the next, in one call and one commit.';
