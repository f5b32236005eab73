-- Purpose: after jobs of these queues, lanes (null for none), kinds and keys have ended: have the lanes
-- opened that were full, or may have waited for one of them in an order, those of a kind's key in all
-- queues, and wake the queues in which others may start now.
-- Invariant: the protocol of call_lane(). Looks for closed lanes alone, of which there are none as a rule.
-- Raises: nothing.
create or replace function jobq_private.call_full_lanes(
    queues text[], lanes uuid[], kinds text[], keys text[]
)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _is_fresh constant boolean := current_setting('transaction_isolation') = 'read committed';
    _has_kind_limits constant boolean := exists (select from jobq_private.known_limit as k);
    _seen boolean[];
    _called text[];
begin
    _seen := array(
        select u.lane_id is null or _is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.closing_slot(u.lane_id, u.concurrency_key)
        )
        from unnest(call_full_lanes.lanes, call_full_lanes.keys) as u (lane_id, concurrency_key)
    );
    if _has_kind_limits or false = any (_seen) or exists (
        select from jobq_private.lane as l
        where l.lane_id = any (call_full_lanes.lanes) and l.state <> 'open'
    ) then
        with called as (
            insert into jobq_private.lane_call as c (queue, lane_id, concurrency_key)
            select distinct w.queue, w.lane_id, e.concurrency_key
            from unnest(
                call_full_lanes.queues, call_full_lanes.lanes, call_full_lanes.kinds,
                call_full_lanes.keys, _seen
            ) as e (queue, lane_id, kind, concurrency_key, is_seen)
            cross join lateral (
                select e.queue, e.lane_id where not e.is_seen
                union all
                select l.queue, l.lane_id
                from jobq_private.lane as l
                where l.lane_id = e.lane_id
                and l.state <> 'open'
                and (l.state = 'full' or exists (
                    select from jobq_private.limit_state as g
                    where g.limit_id = jobq_private.lane_limit_id(
                        l.lane_id, l.concurrency_key, l.kind
                    )
                    and g.head_job_id is not null
                ))
                union all
                -- the same key of the kind in other queues
                select l.queue, l.lane_id
                from jobq_private.lane as l
                where l.kind = e.kind and l.concurrency_key = e.concurrency_key
                and (l.state = 'full' or not e.is_seen)
                union all
                -- a claim may be about to close what it has only just opened
                select o.queue, o.lane_id
                from jobq_private.lane_call as o
                where o.kind = e.kind and o.concurrency_key = e.concurrency_key and not e.is_seen
            ) as w
            returning c.queue
        )
        select array_agg(c.queue) into _called from called as c;
    end if;
    if _has_kind_limits then
        _called := _called || jobq_private.waiting_queues(queues, kinds);
    end if;
    _called := _called || array(
        select q.queue
        from jobq_private.queue as q
        where q.queue = any (call_full_lanes.queues) and q.max_running is not null
    );
    if _called <> '{}' then
        perform jobq_private.wake(array(select distinct w.queue from unnest(_called) as w (queue)));
    end if;
end
$$;
