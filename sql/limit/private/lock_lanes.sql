-- Purpose: lock the rows of these lanes, of whatever priority, and return the lanes of which no
-- other has one: what runs in a lane is counted for all its priorities.
-- Invariant: SKIP LOCKED. A lane that has no row counts as free: open_called_lanes() makes it under
-- a lock of its own. Raises: nothing.
create or replace function jobq_private.lock_lanes(lanes uuid[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _mine tid[];
begin
    _mine := array(
        select l.ctid
        from jobq_private.lane as l
        where l.lane_id = any (lock_lanes.lanes)
        for update skip locked
    );
    return array(
        select distinct u.lane_id
        from unnest(lock_lanes.lanes) as u (lane_id)
        where u.lane_id not in (
            select l.lane_id
            from jobq_private.lane as l
            where l.lane_id = any (lock_lanes.lanes) and l.ctid <> all (_mine)
        )
    );
end
$$;
