-- Purpose: of these lanes of one queue those that a claim may take from: all without a rate, a budget or an order that
-- are of no kind's key, and of the others those whose limits it could lock.
-- Invariant: as lock_limits(). Raises: nothing.
create or replace function jobq_private.hold_ruled_lanes(lanes jobq_private.lane[])
returns jobq_private.lane[]
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _ruled uuid[];
    _held uuid[];
begin
    _ruled := array(
        select jobq_private.lane_limit_id(l.lane_id, l.concurrency_key, l.kind)
        from unnest(hold_ruled_lanes.lanes) as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key, l.kind) as r
        where num_nonnulls(r.spacing, r.budget, l.kind) > 0 or r.is_ordered
    );
    _held := jobq_private.lock_limits((lanes[1]).queue, _ruled);
    return array(
        select hold_ruled_lanes.lanes[l.ordinality]
        from unnest(hold_ruled_lanes.lanes) with ordinality as l
        cross join lateral (
            select jobq_private.lane_limit_id(l.lane_id, l.concurrency_key, l.kind) as limit_id
        ) as g
        where g.limit_id <> all (_ruled) or g.limit_id = any (_held)
        order by l.ordinality
    );
end
$$;
