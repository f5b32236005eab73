-- Purpose: store a job prepared by store_jobs() that has keys; return its id, or that of the job that
-- holds its key.
-- Invariant: see store_keyed_jobs(). Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_keyed_job(job jobq_private.new_job)
returns uuid
language plpgsql
as $$
declare
    _holder uuid := job.job_id;
begin
    -- The slot of a schedule is taken once, and holds no key.
    if job.idempotency_key is not null and job.schedule_id is null then
        _holder := jobq_private.take_idempotency_key(
            job.kind, job.queue, job.idempotency_key, job.job_id
        );
    end if;
    return case
        when _holder = job.job_id then jobq_private.store_dedup_job(job) else _holder
    end;
end
$$;
