-- Purpose: after jobs of these kinds and keys have ended: have the lanes of any queue opened that wait
-- because of their kinds' limits for each key; returns their queues.
-- Invariant: the protocol of call_lane(), by the gate of the key. Who cannot have its lock calls all
-- lanes of the key. Raises: nothing.
create or replace function jobq_private.call_key_lanes(kinds text[], keys text[])
returns text[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _gates uuid[];
    _keys text[];
    _queues text[];
begin
    select array_agg(e.gate_id), array_agg(e.concurrency_key) filter (where not e.is_mine)
    into _gates, _keys
    from (
        select
            u.concurrency_key, g.gate_id,
            current_setting('transaction_isolation') = 'read committed'
            and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(g.gate_id))
                as is_mine
        from (
            select distinct e.kind, e.concurrency_key
            from unnest(call_key_lanes.kinds, call_key_lanes.keys)
                as e (kind, concurrency_key)
            where e.concurrency_key is not null
        ) as u
        join jobq_private.kind as k on k.kind = u.kind
        cross join lateral (
            select jobq_private.key_gate_id(u.kind, u.concurrency_key) as gate_id
        ) as g
        where num_nonnulls(k.key_max_running, k.ordered) > 0
        offset 0
    ) as e;
    if _gates is null then
        return null;
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select l.queue, l.lane_id
        from jobq_private.lane as l
        where l.key_gate_id = any (_gates) and l.state = 'full'
        union
        select l.queue, l.lane_id
        from jobq_private.lane as l
        where _keys is not null and l.concurrency_key = any (_keys)
        union
        select w.queue, w.lane_id
        from jobq_private.lane_call as w
        where _keys is not null and w.concurrency_key = any (_keys)
        returning c.queue
    )
    select array_agg(distinct c.queue) into _queues from called as c;
    return _queues;
end
$$;

revoke all on function jobq_private.call_key_lanes from public;

comment on function jobq_private.call_key_lanes is
'Has lanes opened that wait because of their kinds'' limits for each key.';
