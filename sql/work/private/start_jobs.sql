-- Purpose: start jobs that a claim has locked, and return them in their order; one that has
-- expired dies instead. slots has the slot of each where a limit of running jobs applies.
-- Invariant: a locked row keeps its ctid, and a join by ctid is a loop over the given array, so the
-- order stays. The only function that may set attempt: see job_start. The clock is read here, after
-- running jobs were counted, so that claimed_at is not before the end of a job that made room.
-- Callers pin the planner's settings.
create or replace function jobq_private.start_jobs(
    jobs tid[], worker text, slots smallint[] default null
)
returns setof jobq.claimed_job language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return query
    update jobq_private.job as j
    set
        state = 'running', previous_state = j.state,
        transition_slot = pg_backend_pid() & 1023, worker = start_jobs.worker,
        attempt = j.attempt + 1, claimed_at = _now, lease_expires_at = _now + j.lease,
        slot = s.slot
    from unnest(start_jobs.jobs, start_jobs.slots) as s (job, slot)
    where j.ctid = s.job
    returning
        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts, j.timeout,
        j.lease_expires_at, j.run_at::timestamptz, j.created_at, j.idempotency_key, j.lease,
        j.delivery_version, j.is_awaited or j.slot is not null or j.batch_id is not null;
end
$$;
