-- Purpose: Runs jobs whose kinds are database functions, with the caller's rights, and
-- returns how each ended.
-- Invariant: runs with the caller's rights, in the caller's transaction: a job's work and its
-- completion commit together or not at all. Each job, or each batch, is a subtransaction:
-- run_calls(). If statement_timeout or a cancel stops one, its jobs fail, and the jobs claimed
-- after it are released. The kind lists the errors that are retried; others are final. Results
-- that cannot exceed a limit are stored by one statement at the end.
-- Raises: 22004, 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Column state: succeeded, retrying, dead, cancelled, queued if the job was released,
-- or lost if its function itself released or ended it.
-- Example: select * from jobq.work('{default}', 10);
create or replace function jobq.work(
    queues text[] default '{default}', max_jobs integer default 100
)
returns table (job_id uuid, kind text, state text) language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    _call record;
    _job record;
    _small constant integer := least(
        308, 2 * (jobq.settings() ->> 'max_payload_depth')::integer
    );
    _is_stopped boolean := false;
    _done uuid[] := array[]::uuid[];
    _kinds text[] := array[]::text[];
    _attempts integer[] := array[]::integer[];
    _results jsonb[] := array[]::jsonb[];
begin
    for _call in
        select
            c.kind, c.run, c.is_batch, c.retry_on,
            array_agg(c.job_id order by c.n) as job_ids,
            array_agg(c.attempt order by c.n) as attempts,
            array_agg(c.payload order by c.n) as payloads
        from jobq_internal.claim_calls(work.queues, work.max_jobs) with ordinality
            as c (job_id, attempt, kind, payload, run, is_batch, retry_on, n)
        group by c.kind, c.run, c.is_batch, c.retry_on, case when not c.is_batch then c.n end
        order by min(c.n)
    loop
        kind := _call.kind;
        if _is_stopped then
            return query
            select r.job_id, _call.kind, coalesce(r.state, 'lost')
            from jobq.release_many(_call.job_ids, _call.attempts) as r;
            continue;
        end if;
        for _job in
            select r.*
            from jobq_internal.run_calls(
                _call.run, _call.is_batch, _call.job_ids, _call.attempts, _call.payloads,
                _small
            ) as r
        loop
            job_id := _job.job_id;
            state := _job.state;
            if _job.error_code is not null then
                _is_stopped := _is_stopped or _job.error_code = '57014';
                state := (
                    select coalesce(f.state, 'lost')
                    from jobq.fail_many(jsonb_build_array(jsonb_build_object(
                        'job_id', job_id, 'attempt', _job.attempt,
                        'error', _job.error, 'error_code', _job.error_code,
                        'retryable', left(_job.error_code, 2) = any(_call.retry_on)
                        or _job.error_code = any(_call.retry_on)
                    ))) as f
                );
            elsif state is null then
                _done := array_append(_done, _job.job_id);
                _kinds := array_append(_kinds, kind);
                _attempts := array_append(_attempts, _job.attempt);
                _results := array_append(_results, _job.result);
                continue;
            end if;
            return next;
        end loop;
    end loop;
    return query
    select c.job_id, _kinds[c.n], replace(c.outcome, 'repeated', 'lost')
    from jobq.complete_many(_done, _attempts, to_jsonb(_results))
        with ordinality as c (job_id, attempt, outcome, n);
end
$$;
grant execute on function jobq.work to jobq_worker;
