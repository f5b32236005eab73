-- Purpose: open the lanes of a queue that were called for, those whose time has come, and as
-- many as the gates of their kinds let pass.
-- Invariant: bounded; SKIP LOCKED. A call is used up only while nobody closes its lane, by the
-- lock of call_lane(), and under the locks of all rows of the lane: else it stays for the next
-- claim.
-- Raises: nothing.
create or replace function jobq_private.open_lanes(
    queue text, now timestamptz, has_gates boolean
)
returns void
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
    _closing constant integer := jobq_private.lock_class('closing');
    _calls jobq_private.lane_call[];
    _free bigint[];
    _mine jobq_private.lane[];
    _busy uuid[];
begin
    _calls := array(
        select c
        from jobq_private.lane_call as c
        where c.queue = open_lanes.queue
        limit 500
        for update skip locked
    );
    _free := array(
        select c.call_id
        from unnest(_calls) as c
        where pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(c.lane_id))
    );
    _calls := array(
        select _calls[c.ordinality]
        from unnest(_calls) with ordinality as c
        where c.call_id = any (_free)
    );
    if _calls <> '{}' then
        _mine := array(
            select l
            from jobq_private.lane as l
            where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
            for update skip locked
        );
        _busy := array(
            select l.lane_id
            from jobq_private.lane as l
            where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
            and (l.lane_id, l.priority) not in (
                select m.lane_id, m.priority from unnest(_mine) as m
            )
        );
        delete from jobq_private.lane_call as d
        using unnest(_calls) as c
        where d.queue = c.queue and d.call_id = c.call_id and c.lane_id <> all (_busy);

        insert into jobq_private.lane as l (lane_id, priority, queue, concurrency_key)
        select distinct c.lane_id, c.priority, c.queue, c.concurrency_key
        from unnest(_calls) as c
        where c.priority is not null and c.lane_id <> all (_busy)
        order by c.lane_id, c.priority
        on conflict on constraint lane_pkey do update
        set state = 'open', open_at = '-infinity', gate_id = null
        where l.state <> 'open';

        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity', gate_id = null
        from unnest(_mine) as m
        where l.lane_id = m.lane_id and l.priority = m.priority
        and l.state = 'full' and l.lane_id <> all (_busy);
    end if;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.ctid = any (array(
        select t.ctid
        from jobq_private.lane as t
        where t.queue = open_lanes.queue
        and t.state <> 'full'
        and t.open_at > '-infinity'
        and t.open_at <= open_lanes.now
        order by t.open_at
        limit 200
        for update skip locked
    ));

    if has_gates then
        perform jobq_private.open_gated_lanes(queue, open_lanes.now);
    end if;
end
$$;

revoke all on function jobq_private.open_lanes from public;

comment on function jobq_private.open_lanes is
'Opens the lanes of a queue that were called for, and those whose time has come.';
