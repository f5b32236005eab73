-- Purpose: lock a job, and return true unless another transaction has locked or changed it.
create or replace function jobq_private.lock_job(job tid)
returns boolean language sql as $$
    select true from jobq_private.job as j where j.ctid = lock_job.job for update skip locked
$$;
