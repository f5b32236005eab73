-- Purpose: after an attempt that ended without success: its place is free, and the job
-- waits in its lane again if it has attempts left.
-- The lane of a dead job may have to wait for an operator.
-- Invariant: the protocol of call_lane(). Jobs that are dead or cancelled are told of by
-- archive_jobs(). Raises: nothing.
create or replace function jobq_private.leave_lane(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state = 'dead' then
        perform jobq_private.hold_after_dead(job);
    elsif job.state <> 'cancelled' then
        if job.lane_id is not null then
            perform jobq_private.call_lane(
                job.lane_id, job.queue, job.concurrency_key, job.priority, job.run_at
            );
        end if;
        perform jobq_private.call_full_lanes(
            array[job.queue], array[job.lane_id], array[job.kind],
            array[job.concurrency_key]
        );
    end if;
end
$$;

revoke all on function jobq_private.leave_lane from public;

comment on function jobq_private.leave_lane is
'Has a lane opened that an attempt has left.';
