-- Purpose: raise the reason why a job could not be redriven: another job has its idempotency or
-- dedup key. Returns if there is none, for example because another session has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_problem('IDEMPOTENCY_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, idempotency_key %s', k.job_id, k.kind, k.idempotency_key
        )
        from jobq_private.idempotency_key as k
        where k.kind = job.kind
        and k.idempotency_key = job.idempotency_key
        and k.job_id <> job.job_id
    ));
    perform jobq_private.check_problem('DEDUP_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, dedup_key %s', j.job_id, j.kind, j.dedup_key
        )
        from jobq_private.job as j
        where j.kind = job.kind
        and j.dedup_key = job.dedup_key
        and not (j.dedup is null or j.dedup = 'debounce' and j.attempt > 0)
        and j.job_id <> job.job_id
        limit 1
    ));
end
$$;
