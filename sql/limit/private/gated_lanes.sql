-- Purpose: lock lanes that wait for gates of kinds, for each gate as many of the highest priority as it
-- lets jobs pass, in the session's turn.
-- Invariant: bounded; SKIP LOCKED. The turn is that of pick_lanes(), so that it meets lanes that were opened next.
-- Lanes that wait for a gate that is gone are among them, and one of a gate that is to be pulled back.
-- Raises: nothing.
create or replace function jobq_private.gated_lanes(queue text, now timestamptz)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
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
    _gate record;
    _lanes jobq_private.lane[] := '{}'::jobq_private.lane[];
    _some jobq_private.lane[];
begin
    for _gate in
        select
            a.gate_id, least(coalesce(greatest(a.room, 1), 100), 100) as room,
            (
                select t.priority
                from jobq_private.lane as t
                where t.queue = gated_lanes.queue and t.gate_id = a.gate_id
                order by t.priority desc
                limit 1
            ) as priority
        from jobq_private.awaited_gates(gated_lanes.queue, gated_lanes.now) as a
        left join jobq_private.gate as g on g.gate_id = a.gate_id
        left join jobq_private.kind as k on k.kind = g.kind
        where coalesce(a.room, 1) > 0
        or g.passed_until > gated_lanes.now + coalesce(k.rate_burst, 1)
            * jobq_private.spacing(k.rate_limit, k.rate_period) * interval '1 us'
    loop
        _some := array(
            select t
            from jobq_private.lane as t
            where t.queue = gated_lanes.queue and t.gate_id = _gate.gate_id
            and t.priority = _gate.priority and t.lane_id > _last
            order by t.lane_id
            limit _gate.room
            for update skip locked
        );
        if cardinality(_some) < _gate.room then
            _some := _some || array(
                select t
                from jobq_private.lane as t
                where t.queue = gated_lanes.queue and t.gate_id = _gate.gate_id
                and t.priority = _gate.priority and t.lane_id <= _last
                order by t.lane_id
                limit _gate.room - cardinality(_some)
                for update skip locked
            );
        end if;
        _lanes := _lanes || _some;
    end loop;
    return _lanes;
end
$$;

revoke all on function jobq_private.gated_lanes from public;

comment on function jobq_private.gated_lanes is
'Locks lanes that wait for gates of kinds, as many as these let pass.';
