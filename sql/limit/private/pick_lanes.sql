-- Purpose: the next open lanes of a queue and priority in the session's turn, locked.
-- Invariant: SKIP LOCKED, so that no claim waits; goes round once. Sessions go round by themselves,
-- each from where it was; a forgotten place, as behind a pooler, only starts the round anew. Hot:
-- its caller pins the search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.pick_lanes(
    queue text, priority integer, max_lanes integer
)
returns jobq_private.lane[]
language plpgsql
as $$
declare
    _name constant text := 'jobq.lane_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _picked jobq_private.lane[];
    _more jobq_private.lane[];
begin
    _picked := array(
        select l
        from jobq_private.lane as l
        where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
        and l.state = 'open' and l.lane_id > _last
        order by l.lane_id
        limit pick_lanes.max_lanes
        for update skip locked
    );
    if cardinality(_picked) < pick_lanes.max_lanes then
        _more := array(
            select l
            from jobq_private.lane as l
            where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
            and l.state = 'open' and l.lane_id <= _last
            order by l.lane_id
            limit pick_lanes.max_lanes - cardinality(_picked)
            for update skip locked
        );
        _picked := _picked || _more;
    end if;
    if _picked <> '{}' then
        perform set_config(_name, (_picked[cardinality(_picked)]).lane_id::text, false);
    end if;
    return _picked;
end
$$;
