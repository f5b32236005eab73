-- Purpose: hold the lane of a dead job where its order asks for that: until the job is redriven,
-- deleted or pruned, or the key released.
-- Invariant: in the transaction in which it died. Raises: nothing.
create or replace function jobq_private.hold_after_dead(job jobq_private.ending)
returns void
language plpgsql
as $$
begin
    if exists (
        select from jobq_private.lane_rule(
            job.queue, job.concurrency_key,
            jobq_private.lane_kind(job.lane_id, job.queue, job.concurrency_key, job.kind)
        ) as r
        where r.is_ordered and r.holds_on_dead
    ) then
        perform jobq_private.store_hold(
            jobq_private.lane_id(job.queue, job.concurrency_key), job.queue, null, 'infinity',
            format('job %s is dead', job.job_id), job.concurrency_key, job.job_id
        );
    end if;
end
$$;
