-- Purpose: lease up to max_jobs runnable jobs to a worker.
-- Invariant: SKIP LOCKED, so no two callers get one job and none waits. Queues in the
-- order given; within a queue by priority, then run_at, then id. Each priority in use is
-- one range of job_ready_idx that ends at now, so jobs due later cost nothing.
-- Raises: 22004, 22023.
create or replace function jobq.claim(queues text[], worker text, max_jobs integer default 1)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _left integer := claim.max_jobs;
    _queue text;
    _priority integer;
    _claimed integer;
begin
    perform jobq_private.check_claim(claim.queues, claim.worker, claim.max_jobs);

    foreach _queue in array claim.queues loop
        _priority := 32768;
        while _left > 0 loop
            select j.priority into _priority
            from jobq_private.job as j
            where j.queue = _queue
            and j.state in ('queued', 'retrying')
            and j.priority < _priority
            order by j.priority desc
            limit 1;
            exit when not found or jobq_private.is_paused(_queue);

            return query
            with due as materialized (
                select j.job_id
                from jobq_private.job as j
                where j.queue = _queue
                and j.state in ('queued', 'retrying')
                and j.priority = _priority
                and j.run_at <= _now
                order by j.run_at, j.job_id
                limit _left
                for update skip locked
            )
            update jobq_private.job as j
            set state = 'running', worker = claim.worker
            from due as d
            where j.job_id = d.job_id
            returning
                j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                j.max_attempts, j.timeout, j.lease_expires_at, j.run_at, j.created_at,
                j.idempotency_key, j.lease;
            get diagnostics _claimed = row_count;
            _left := _left - _claimed;
        end loop;
    end loop;
end
$$;

revoke all on function jobq.claim(text[], text, integer) from public;
grant execute on function jobq.claim(text[], text, integer) to jobq_worker;

comment on function jobq.claim(text[], text, integer) is
'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, run_at and id.';
