-- Purpose: Leases one job by id to a worker, or returns nothing if it cannot run now.
-- Invariant: SKIP LOCKED; a job that is not due, or whose queue or kind is paused, is not taken.
-- Waits for transactions that start jobs under the same limits. Raises: 22004, 22023.
-- Returns: a row of jobq.claimed_job, or none.
-- Example: select * from jobq.claim_job(:'waiting', 'worker-1');
create or replace function jobq.claim_job(job_id uuid, worker text)
returns setof jobq.claimed_job language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('job_id', num_nulls(claim_job.job_id));
    perform jobq_private.check_claim(worker => claim_job.worker);
    return query
    with found as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = claim_job.job_id
        and j.state in ('queued', 'retrying')
        and j.run_at <= clock_timestamp()
        and not exists (
            select from jobq_private.queue as q
            where q.queue = j.queue and q.paused_at is not null
        )
        and not exists (
            select from jobq_private.paused_kind as p where p.kind in (j.kind, '*')
        )
        for update skip locked
    )
    -- job_transition() sets attempt and lease, and checks the limits
    update jobq_private.job as j
    set state = 'running', worker = claim_job.worker
    from found as f
    where j.job_id = f.job_id
    returning
        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts,
        j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
        j.idempotency_key, j.lease, j.delivery_version,
        j.is_awaited or j.slot is not null or j.batch_id is not null;
exception
    when sqlstate 'JQ011' then
        return;
end
$$;
grant execute on function jobq.claim_job to jobq_worker;
