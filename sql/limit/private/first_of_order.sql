-- Purpose: the job that starts before this one in an ordered lane: that which runs or is tried again
-- (head_job_id), or else one that is due and comes earlier; null for none.
-- Invariant: in the order of a kind's key the first may wait in another queue. Raises: nothing.
create or replace function jobq_private.first_of_order(
    job jobq_private.job, head_job_id uuid, now timestamptz
)
returns uuid
language sql
stable
parallel safe
as $$
    select nullif(coalesce(
        (
            select h.job_id
            from jobq_private.job as h
            where h.job_id = first_of_order.head_job_id
            and (
                h.lane_id = job.lane_id
                or h.kind = jobq_private.lane_kind(
                    job.lane_id, job.queue, job.concurrency_key, job.kind
                )
            )
        ),
        (
            select w.job_id
            from jobq_private.job as w
            where w.lane_id = job.lane_id
            and w.state in ('queued', 'retrying')
            and w.run_at <= first_of_order.now
            and (
                w.priority > job.priority
                or w.priority = job.priority and (w.run_at, w.job_id) < (job.run_at, job.job_id)
            )
            limit 1
        )
    ), job.job_id)
$$;
