-- Purpose: whether a claim may find something in the lanes of a queue.
-- Invariant: an index probe each for calls, lanes with work, and lanes that wait for a limit. No SET
-- clause: its callers pin the planner's settings. Raises: nothing.
create or replace function jobq_private.has_lane_work(queue text)
returns boolean
language sql
stable
as $$
    select exists (
        select from jobq_private.lane_call as c where c.queue = has_lane_work.queue
    )
    or exists (
        select from jobq_private.lane as l
        where l.queue = has_lane_work.queue and l.state <> 'full'
    )
    or exists (
        select from jobq_private.lane as l
        where l.queue = has_lane_work.queue and l.limit_id is not null
    )
$$;
