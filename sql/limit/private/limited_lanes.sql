-- Purpose: lock lanes that wait for limits of kinds, for each limit as many of the highest priority as it
-- lets jobs pass, in the session's turn.
-- Invariant: bounded; SKIP LOCKED. The turn is that of pick_lanes(), so that it meets lanes that were opened next.
-- Lanes that wait for a limit that is gone are among them.
-- Raises: nothing.
create or replace function jobq_private.limited_lanes(queue text, now timestamptz)
returns jobq_private.lane[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _last constant uuid := coalesce(
        nullif(current_setting('jobq.lane_' || (hashtext(queue) & 1023), true), '')::uuid,
        gen_random_uuid()
    );
    _limit record;
    _lanes jobq_private.lane[] := '{}'::jobq_private.lane[];
    _some jobq_private.lane[];
begin
    for _limit in
        select
            a.limit_id, least(coalesce(greatest(a.room, 1), 100), 100) as room,
            (
                select t.priority
                from jobq_private.lane as t
                where t.queue = limited_lanes.queue and t.limit_id = a.limit_id
                order by t.priority desc
                limit 1
            ) as priority
        from jobq_private.awaited_limits(limited_lanes.queue, limited_lanes.now) as a
        where coalesce(a.room, 1) > 0
    loop
        _some := array(
            select t
            from jobq_private.lane as t
            where t.queue = limited_lanes.queue and t.limit_id = _limit.limit_id
            and t.priority = _limit.priority and t.lane_id > _last
            order by t.lane_id
            limit _limit.room
            for update skip locked
        );
        if cardinality(_some) < _limit.room then
            _some := _some || array(
                select t
                from jobq_private.lane as t
                where t.queue = limited_lanes.queue and t.limit_id = _limit.limit_id
                and t.priority = _limit.priority and t.lane_id <= _last
                order by t.lane_id
                limit _limit.room - cardinality(_some)
                for update skip locked
            );
        end if;
        _lanes := _lanes || _some;
    end loop;
    return _lanes;
end
$$;
