-- Purpose: Ends a batch of attempts and claims the next jobs, in one call and one commit.
-- Invariant: attempts are ended before the claim, so that what they free can be claimed. A job
-- that another transaction has locked does not hold up the others: it comes back as held, and a
-- later call settles it. Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: maximum number of new jobs, 0 to 10000.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost if the attempt has lost its lease; held if another transaction has locked
-- the job: settle it again later. Attempts that succeeded have no row; a success that is sent
-- again is lost here, where complete_many() returns repeated.
-- Column attempt: for a claimed job the new attempt, else the settled one.
-- Example: select outcome, job_id, payload from jobq.exchange('{default}', 'worker-1', 10, array[:'running'::uuid], '{1}');
create or replace function jobq.exchange(
    queues text[], worker text, max_jobs integer, job_ids uuid[] default '{}',
    attempts integer[] default '{}', results jsonb default null, failures jsonb default null,
    max_limited integer default null, except_kinds text[] default null
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
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _results constant jsonb := jobq_private.check_results(
        exchange.job_ids, exchange.attempts, exchange.results
    );
    _moved bigint[] := '{}'::bigint[];
    _failures jobq_private.failure[];
    _locked uuid[];
begin
    if exchange.job_ids <> '{}' then
        _moved := coalesce(jobq_private.archive_jobs(
            exchange.job_ids, exchange.attempts, 'succeeded', _results, true
        ), '{}');
    end if;
    if exchange.failures is not null then
        _failures := jobq_private.read_failures(exchange.failures);
        _locked := jobq_private.lock_attempts(
            array(select f.job_id from unnest(_failures) as f),
            array(select f.attempt from unnest(_failures) as f)
        );
    end if;
    if cardinality(_moved) < cardinality(exchange.job_ids) or _failures is not null then
        for outcome, job_id, attempt in
            select
                coalesce(s.state, jobq_private.held_or_lost(u.job_id, u.attempt)),
                u.job_id, u.attempt
            from (
                select s.job_id, s.attempt, false as has_failed, s.n
                from unnest(exchange.job_ids, exchange.attempts)
                    with ordinality as s (job_id, attempt, n)
                where s.n <> all(_moved)
                union all
                select f.job_id, f.attempt, true, f.n
                from unnest(_failures) with ordinality
                    as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
            ) as u
            left join jobq_private.settle_failures(array(
                select t from unnest(_failures) as t where t.job_id = any(_locked)
            )) as s
                on u.has_failed and s.job_id = u.job_id and s.attempt = u.attempt
            order by u.has_failed, u.n
        loop
            return next;
        end loop;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(
        exchange.queues, exchange.worker, exchange.max_jobs, exchange.max_limited,
        exchange.except_kinds
    ) as c;
end
$$;
grant execute on function jobq.exchange to jobq_worker;
