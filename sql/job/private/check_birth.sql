-- Purpose: refuse a new row with a past.
-- Invariant: a new job has no previous state and is queued or blocked. redrive_jobs() may
-- restore a job that is dead or cancelled in the archive. Raises: JQ002.
create or replace function jobq_private.check_birth(job jobq_private.job)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state in ('queued', 'blocked')
        and job.attempt = job.uncounted
        and job.max_attempts > 0
        and num_nonnulls(job.claimed_at, job.lease_expires_at, job.worker) = 0
        and (job.concurrency_key is null or job.lane_id is not null)
        and (
            (job.previous_state is null and job.attempt = 0)
            or (
                job.previous_state in ('dead', 'cancelled')
                and exists (
                    select from jobq_private.job_archive as a
                    where a.job_id = job.job_id
                    and a.state = job.previous_state
                    and a.attempt = job.attempt
                    and a.finished_at >= jobq_private.id_time(job.job_id) - interval '1 day'
                )
            )
        )
    then
        return;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: a new job must be queued or blocked, in the lane of its key, without previous state, attempt or lease',
        job.job_id
    ));
end
$$;
