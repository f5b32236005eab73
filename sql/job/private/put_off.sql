-- Purpose: give a job that has not begun the payload, cost and expires_at of a later call, and
-- postpone it by dedup_period or to the call's run_at, at most by dedup_max_wait in all. False if
-- it has begun or ended meanwhile. Never: ILLEGAL_STATE.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns boolean language plpgsql as $$
declare
    _queue text;
begin
    update jobq_private.job as j
    set
        payload = job.payload,
        cost = job.cost,
        run_at = least(job.run_at, j.created_at + job.dedup_max_wait),
        expires_at = job.expires_at
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0
    returning j.queue into _queue;
    if not found then
        return false;
    end if;
    perform jobq_private.on_move(array[put_off.job_id]);
    perform jobq_private.wake(array[_queue]);
    return true;
end
$$;
