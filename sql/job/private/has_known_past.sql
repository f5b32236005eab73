-- Purpose: whether a new row is a job that comes back from the archive, or a waiting one that
-- another database of the cluster has sent, with the past that it has there.
-- Invariant: redrive_jobs() deletes the archived row later, and receive_jobs() has stored what it
-- received before, in the same transaction.
create or replace function jobq_private.has_known_past(job jobq_private.job)
returns boolean
language sql
stable
as $$
    select job.attempt - job.uncounted < job.max_attempts
    and num_nonnulls(job.claimed_at, job.lease_expires_at, job.worker) = 0
    and (job.concurrency_key is null or job.key_id is not null)
    and (
        job.state in ('queued', 'blocked') and job.attempt = job.uncounted and exists (
            select from jobq_private.job_archive as a
            where a.job_id = job.job_id and a.attempt = job.attempt
            and a.state = job.previous_state and a.state in ('dead', 'cancelled')
            and a.finished_at >= jobq_private.id_time(job.job_id) - interval '1 day'
        )
        or job.state in ('queued', 'retrying') and exists (
            select from jobq_private.moved_job as m
            where m.job_id = job.job_id and m.shard_id is null
            and m.job ->> 'state' = job.state
            and m.job ->> 'previous_state' is not distinct from job.previous_state
            and (m.job ->> 'attempt')::integer = job.attempt
            and (m.job ->> 'uncounted')::integer = job.uncounted
        )
    )
$$;
