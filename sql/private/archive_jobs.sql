-- Purpose: move live jobs into the archive in a final state, as one statement.
-- Invariant: only the attempt that holds the lease moves a running job; the archive's
-- foreign key refuses an illegal change. The state is deliberately not compared with
-- 'running', so that the primary key and never the index of leases serves the delete;
-- a nested loop over sorted ids locks in the order that every batch uses.
-- Returns the attempts that moved. Raises: 23503 for an illegal change.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb,
    out moved_ids uuid[], out moved_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    with gone as (
        delete from jobq_private.job as j
        using (
            select g.*
            from rows from (
                unnest(archive_jobs.job_ids, archive_jobs.attempts),
                jsonb_array_elements(archive_jobs.results)
            ) as g (job_id, attempt, result)
            order by g.job_id
        ) as f
        where j.job_id = f.job_id
        and j.attempt = f.attempt
        and (j.lease_expires_at is not null or j.state = archive_jobs.state)
        returning j.*, nullif(f.result, 'null') as result
    ),
    kept as (
        insert into jobq_private.job_archive (
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at,
            slot_at, lease, timeout, schedule_id, attempt, uncounted, max_attempts,
            expiries, priority, state, previous_state, region, queue, kind, worker,
            idempotency_key, dedup_key, dedup, cancel_reason, last_error_code,
            last_error, last_error_details, metadata, progress, payload, finished_at, result
        )
        select
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at,
            g.cancel_requested_at, g.slot_at, g.lease, g.timeout, g.schedule_id,
            g.attempt, g.uncounted, g.max_attempts, g.expiries, g.priority,
            archive_jobs.state,
            case when g.state = archive_jobs.state then g.previous_state else g.state end,
            g.region, g.queue, g.kind, g.worker, g.idempotency_key, g.dedup_key, g.dedup,
            g.cancel_reason, g.last_error_code, g.last_error, g.last_error_details,
            g.metadata, g.progress, g.payload, _now, g.result
        from gone as g
        returning job_id, attempt
    )
    select array_agg(k.job_id), array_agg(k.attempt) into moved_ids, moved_attempts
    from kept as k;
end
$$;

revoke all on function jobq_private.archive_jobs(uuid[], integer[], text, jsonb) from public;

comment on function jobq_private.archive_jobs(uuid[], integer[], text, jsonb) is
'Moves live jobs into the archive in a final state and returns their attempts.';
