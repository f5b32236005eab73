-- Purpose: after jobs of these queues, lanes (null for none), kinds and keys have ended: have the lanes
-- opened that were full, or may have waited for one of them in an order, and wake the queues in
-- which others may start now.
-- Invariant: the protocol of call_lane(). A claim under way may be about to have lanes wait for the
-- gate of a kind, which nobody sees yet: so where one has ended, its own queue is woken in any case.
-- Raises: nothing.
create or replace function jobq_private.call_full_lanes(
    queues text[], lanes uuid[], kinds text[], keys text[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _is_fresh constant boolean := current_setting('transaction_isolation') = 'read committed';
    _lanes uuid[];
    _of text[];
    _seen boolean[];
    _others text[];
    _called text[];
begin
    select
        array_agg(u.lane_id), array_agg(u.queue),
        array_agg(_is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.lane_slot(u.lane_id)
        ))
    into _lanes, _of, _seen
    from (
        select distinct g.queue, g.lane_id
        from unnest(call_full_lanes.queues, call_full_lanes.lanes) as g (queue, lane_id)
        where g.lane_id is not null
        offset 0
    ) as u;
    if exists (select from jobq_private.kind_gate as k) then
        _others := jobq_private.call_key_lanes(kinds, keys);
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select u.queue, u.lane_id
        from unnest(_of, _lanes, _seen) as u (queue, lane_id, is_seen)
        where not u.is_seen
        or exists (
            select from jobq_private.lane as l
            where l.lane_id = u.lane_id
            and (
                l.state = 'full'
                or l.state = 'later' and (
                    l.key_gate_id is not null
                    or exists (
                        select from jobq_private.gate as g
                        where g.gate_id = l.lane_id and g.head_job_id is not null
                    )
                )
            )
        )
        returning c.queue
    )
    select array_agg(distinct w.queue) into _called
    from (
        select c.queue from called as c
        union all
        select unnest(_others)
        union all
        select q.queue
        from jobq_private.queue as q
        where q.queue = any (call_full_lanes.queues) and q.max_running is not null
        union all
        select l.queue
        from jobq_private.gate as g
        join jobq_private.lane as l on l.gate_id = g.gate_id
        where g.kind = any (call_full_lanes.kinds) and g.queue is null
        union all
        select u.queue
        from (
            select distinct g.queue, g.kind
            from unnest(call_full_lanes.queues, call_full_lanes.kinds) as g (queue, kind)
        ) as u
        where exists (
            select from jobq_private.gate as g where g.kind = u.kind and g.queue is null
        )
    ) as w;
    if _called is not null then
        perform jobq_private.wake(_called);
    end if;
end
$$;

revoke all on function jobq_private.call_full_lanes from public;

comment on function jobq_private.call_full_lanes is
'Has lanes opened, and queues woken, that jobs have left.';
