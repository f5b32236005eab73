-- Purpose: call_lane() for each lane of these new jobs.
-- Invariant: once for a lane and priority, with the time of its earliest job. Raises: nothing.
create or replace function jobq_private.call_lanes(job_ids uuid[])
returns void
language sql
set jit = off
set enable_seqscan = off
as $$
    select jobq_private.call_lane(
        l.lane_id, l.queue, l.concurrency_key, l.priority, l.run_at
    )
    from (
        select j.lane_id, j.queue, j.concurrency_key, j.priority, min(j.run_at) as run_at
        from jobq_private.job as j
        where j.job_id = any (call_lanes.job_ids) and j.lane_id is not null
        group by j.lane_id, j.queue, j.concurrency_key, j.priority
        offset 0
    ) as l
$$;
