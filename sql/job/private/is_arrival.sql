-- Purpose: whether a new row is a waiting job that another database of the cluster has sent.
-- Invariant: receive_jobs() has stored what it must be, in the same transaction. Raises: nothing.
create or replace function jobq_private.is_arrival(job jobq_private.job)
returns boolean
language sql
stable
as $$
    select job.state in ('queued', 'retrying')
        and job.attempt - job.uncounted < job.max_attempts
        and num_nonnulls(job.claimed_at, job.lease_expires_at, job.worker) = 0
        and (job.concurrency_key is null or job.lane_id is not null)
        and exists (
            select from jobq_private.moved_job as m
            where m.job_id = job.job_id
            and m.shard_id is null
            and m.job ->> 'state' = job.state
            and m.job ->> 'previous_state' is not distinct from job.previous_state
            and (m.job ->> 'attempt')::integer = job.attempt
            and (m.job ->> 'uncounted')::integer = job.uncounted
        )
$$;
