-- Purpose: a job that has not begun takes the payload of a later call, and waits on from then: by
-- dedup_period or until the call's run_at, but no longer in all than dedup_max_wait. False when it has
-- begun or ended meanwhile.
-- Invariant: one that is blocked waits for its others as well. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE, QUEUE_FULL.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns boolean
language plpgsql
as $$
begin
    update jobq_private.job as j
    set
        payload = job.payload,
        run_at = least(job.run_at, j.created_at + job.dedup_max_wait)
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0;
    if not found then
        return false;
    end if;
    perform jobq_private.on_store('{}', array[put_off.job_id]);
    perform jobq_private.wake(array[job.queue]);
    return true;
end
$$;
