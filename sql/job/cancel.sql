-- Purpose: Cancels a waiting job, or requests cancellation of a running one, and returns which.
-- Invariant: the row lock decides between cancel and complete; the later one sees what the first
-- has done. Raises: 22004, 22023, JQ001.
-- Returns: cancelled when it waited, cancel_requested when it runs, already_finished
-- when it has ended.
-- Example: select jobq.cancel(:'waiting', 'ordered twice');
create or replace function jobq.cancel(job_id uuid, reason text default null)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _state text;
    _queue text;
begin
    perform jobq_private.check_given('job_id', num_nulls(cancel.job_id));
    perform jobq_private.check_argument(case when length(cancel.reason) > 512
        then 'reason must have at most 512 characters' end);
    select j.state, j.queue into _state, _queue
    from jobq_private.job as j
    where j.job_id = cancel.job_id
    for update;
    if not found then
        perform jobq.get_job(cancel.job_id);
        return 'already_finished';
    end if;
    perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
    if _state = 'running' then
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel.reason)
        where j.job_id = cancel.job_id;
        perform jobq_private.notify('jobq_cancel', _queue);
        return 'cancel_requested';
    end if;
    update jobq_private.job as j
    set state = 'cancelled', cancel_reason = cancel.reason
    where j.job_id = cancel.job_id;
    return 'cancelled';
end
$$;
grant execute on function jobq.cancel to jobq_producer, jobq_operator;
