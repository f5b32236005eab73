-- Purpose: a job has started by no claim of a batch: charge its cost to the limits that it has passed.
-- Invariant: the caller holds them since find_place(), and has stamped the start. All are written
-- to, so that a repeatable snapshot that has not seen the start fails at them. Raises: nothing.
create or replace function jobq_private.charge_job(job jobq_private.job)
returns void
language sql
as $$
    select jobq_private.charge(
        j.limit_id, j.scope, j.spacing, j.budget, coalesce(job.cost, 1), j.concurrency_key,
        j.is_ordered, job.job_id
    )
    from jobq_private.job_limits(job) as j
$$;
