-- Purpose: of these lanes of one queue those that a claim may take from: all without a rate or an order, and
-- of the others those whose gates it could lock.
-- Invariant: as hold_gates(). Raises: nothing.
create or replace function jobq_private.hold_ruled_lanes(lanes jobq_private.lane[])
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _ruled uuid[];
    _held uuid[];
begin
    _ruled := array(
        select l.lane_id
        from unnest(hold_ruled_lanes.lanes) as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        where r.spacing is not null or r.is_ordered
    );
    _held := jobq_private.hold_gates((lanes[1]).queue, _ruled);
    return array(
        select hold_ruled_lanes.lanes[l.ordinality]
        from unnest(hold_ruled_lanes.lanes) with ordinality as l
        where l.lane_id <> all (_ruled) or l.lane_id = any (_held)
        order by l.ordinality
    );
end
$$;

revoke all on function jobq_private.hold_ruled_lanes from public;

comment on function jobq_private.hold_ruled_lanes is
'Of these lanes those that a claim may take from.';
