-- Purpose: queue or cancel a job that waits for the end of a batch, unless it has moved before; reason
-- is why it is cancelled.
-- Invariant: one that somebody holds is left. Returns how many moved: 0 or 1. Raises: nothing.
create or replace function jobq_private.call_back(job_id uuid, state text, reason text default null)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
begin
    update jobq_private.job as j
    set
        state = call_back.state,
        run_at = greatest(j.run_at, clock_timestamp()),
        cancel_reason = case when call_back.state = 'cancelled' then call_back.reason end
    where j.job_id = (
        select c.job_id
        from jobq_private.job as c
        where c.job_id = call_back.job_id and c.state = 'blocked'
        for update skip locked
    )
    returning j.queue into _queue;
    if not found then
        return 0;
    elsif call_back.state = 'queued' then
        perform jobq_private.call_lanes(array[call_back.job_id]);
        perform jobq_private.wake(array[_queue]);
    end if;
    return 1;
end
$$;

revoke all on function jobq_private.call_back from public;

comment on function jobq_private.call_back is
'Queues or cancels a job that waits for the end of a batch.';
