-- Purpose: the limits of kinds for which keys of a queue wait, how many jobs each lets
-- start (null for any number), and when that changes by itself.
-- Invariant: steps from each limit to the next, and counts each once.
create or replace function jobq_private.awaited_limits(queue text, now timestamptz)
returns table (limit_id uuid, room integer, opens_at timestamptz)
language sql
stable
parallel safe
rows 10
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
    with recursive awaited as (
        (
            select w.limit_id
            from jobq_private.waiting_key as w
            where w.queue = awaited_limits.queue and w.limit_id is not null
            order by w.limit_id
            limit 1
        )
        union all
        select n.limit_id
        from awaited as a
        cross join lateral (
            select w.limit_id
            from jobq_private.waiting_key as w
            where w.queue = awaited_limits.queue and w.limit_id > a.limit_id
            order by w.limit_id
            limit 1
        ) as n
    )
    select r.limit_id, r.room, r.opens_at
    from jobq_private.limit_rooms(
        array(
            select row(a.limit_id, null, g.kind, null)::jobq_private.scope
            from awaited as a
            left join jobq_private.limit_state as g on g.limit_id = a.limit_id
        ), awaited_limits.now
    ) as r
$$;
