-- Purpose: raise the reason why a job could not be redriven: another job has its idempotency or
-- dedup key. Returns if there is none, for example because another session has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void
language plpgsql
stable
as $$
declare
    _holder uuid;
begin
    select k.job_id into _holder
    from jobq_private.idempotency_key as k
    where k.kind = job.kind
    and k.idempotency_key = job.idempotency_key
    and k.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('IDEMPOTENCY_CONFLICT', format(
            'held by job_id %s: kind %s, idempotency_key %s', _holder, job.kind,
            job.idempotency_key
        ));
    end if;
    select j.job_id into _holder
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    and j.dedup is not null
    and j.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('DEDUP_CONFLICT', format(
            'held by job_id %s: kind %s, dedup_key %s', _holder, job.kind, job.dedup_key
        ));
    end if;
end
$$;
