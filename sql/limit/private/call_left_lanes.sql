-- Purpose: before these jobs move to a queue, or (null) are deleted or go behind others, or when they
-- have started: have the lanes opened in which others wait for one of them, as in an ordered lane, or
-- where its kind may start no more.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.call_left_lanes(job_ids uuid[], queue text)
returns void
language sql
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind),
        array_agg(j.concurrency_key)
    )
    from jobq_private.job as j
    where j.job_id = any (call_left_lanes.job_ids)
    and j.lane_id is not null
    and j.queue is distinct from call_left_lanes.queue
    having count(*) > 0
$$;
