-- Purpose: after jobs of these kinds and keys have ended: have the lanes of these keys opened in all
-- queues, where kinds have limits for each; returns their queues.
-- Invariant: the protocol of call_lane(), by the limit of the key. Who cannot have its lock calls all
-- lanes of the key. Raises: nothing.
create or replace function jobq_private.call_key_lanes(kinds text[], keys text[])
returns text[]
language plpgsql
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _is_fresh constant boolean := current_setting('transaction_isolation') = 'read committed';
    _seen boolean[];
    _queues text[];
begin
    select array_agg(e.kind), array_agg(e.concurrency_key), array_agg(e.is_seen)
    into kinds, keys, _seen
    from (
        select u.kind, u.concurrency_key, _is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.lane_slot(jobq_private.key_limit_id(u.kind, u.concurrency_key))
        ) as is_seen
        from (
            select distinct e.kind, e.concurrency_key
            from unnest(call_key_lanes.kinds, call_key_lanes.keys)
                as e (kind, concurrency_key)
            where e.concurrency_key is not null
        ) as u
        join jobq_private.kind as k on k.kind = u.kind
        where num_nonnulls(k.key_max_running, k.ordered) > 0
        offset 0
    ) as e;
    if kinds is null then
        return null;
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select l.queue, l.lane_id
        from unnest(call_key_lanes.kinds, call_key_lanes.keys, _seen)
            as e (kind, concurrency_key, is_seen)
        join jobq_private.lane as l
            on l.kind = e.kind and l.concurrency_key = e.concurrency_key
        where l.state = 'full' or not e.is_seen
        union
        -- a claim may be about to close what it has only just opened
        select w.queue, w.lane_id
        from unnest(call_key_lanes.kinds, call_key_lanes.keys, _seen)
            as e (kind, concurrency_key, is_seen)
        join jobq_private.lane_call as w
            on w.kind = e.kind and w.concurrency_key = e.concurrency_key
        where not e.is_seen
        returning c.queue
    )
    select array_agg(distinct c.queue) into _queues from called as c;
    return _queues;
end
$$;
