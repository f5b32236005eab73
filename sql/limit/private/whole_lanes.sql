-- Purpose: of these lanes those of which no other claim has a row, of whatever priority: what runs
-- in a lane is counted for all priorities.
-- Invariant: as lock_lanes(). Rows of other priorities are looked for only where the queue has open
-- ones: who opens a row has all of its lane. Hot: its caller pins the search path, and that no plan
-- is made for a call. Raises: nothing.
create or replace function jobq_private.whole_lanes(
    lanes jobq_private.lane[], queue text, priority integer
)
returns jobq_private.lane[]
language plpgsql
as $$
declare
    _whole uuid[];
begin
    if not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority < whole_lanes.priority
    ) and not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority > whole_lanes.priority
    ) then
        return lanes;
    end if;
    _whole := jobq_private.lock_lanes(
        array(select g.lane_id from unnest(whole_lanes.lanes) as g)
    );
    return array(
        select whole_lanes.lanes[g.ordinality]
        from unnest(whole_lanes.lanes) with ordinality as g
        where g.lane_id = any (_whole)
        order by g.ordinality
    );
end
$$;
