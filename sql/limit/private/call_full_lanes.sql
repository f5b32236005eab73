-- Purpose: after jobs of these queues, lanes (null for none), kinds and keys have ended: have the lanes
-- opened that were full, or may have waited for one of them in an order, and wake the queues in
-- which others may start now.
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
    _seen boolean[];
    _called text[];
begin
    _seen := array(
        select u.lane_id is null or _is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.lane_slot(u.lane_id)
        )
        from unnest(call_full_lanes.lanes) as u (lane_id)
    );
    if false = any (_seen) or exists (
        select from jobq_private.lane as l
        where l.lane_id = any (call_full_lanes.lanes) and l.state <> 'open'
    ) then
        with called as (
            insert into jobq_private.lane_call as c (queue, lane_id)
            select distinct u.queue, u.lane_id
            from unnest(call_full_lanes.queues, call_full_lanes.lanes, _seen)
                as u (queue, lane_id, is_seen)
            where not u.is_seen
            or exists (
                select from jobq_private.lane as l
                where l.lane_id = u.lane_id
                and l.state <> 'open'
                and (
                    l.state = 'full'
                    or l.state = 'later' and exists (
                        select from jobq_private.limit_state as g
                        where g.limit_id = jobq_private.lane_limit_id(
                            l.lane_id, l.concurrency_key, l.kind
                        )
                        and g.head_job_id is not null
                    )
                )
            )
            returning c.queue
        )
        select array_agg(c.queue) into _called from called as c;
    end if;
    if exists (select from jobq_private.known_limit as k) then
        _called := _called || jobq_private.call_key_lanes(kinds, keys)
            || jobq_private.waiting_queues(queues, kinds);
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
