-- Purpose: lanes wait for the limits of kinds: no claim looks at them until such a limit has room.
-- Invariant: the caller holds the lanes' locks. Whether a limit has room is counted anew by each
-- claim, so nobody must open it, but who adds a job that goes before the one that waits. Raises: nothing.
create or replace function jobq_private.bar_lanes(
    lanes uuid[], limits uuid[], queue text, priority integer
)
returns void
language sql
as $$
    update jobq_private.lane as l
    set
        state = 'full', limit_id = b.limit_id,
        open_at = coalesce((
            select j.run_at
            from jobq_private.job as j
            where j.queue = bar_lanes.queue
            and j.lane_id = b.lane_id
            and j.priority = bar_lanes.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ), '-infinity')
    from unnest(bar_lanes.lanes, bar_lanes.limits) as b (lane_id, limit_id)
    where l.lane_id = b.lane_id
    and l.priority = bar_lanes.priority
    and l.queue = bar_lanes.queue
$$;
