-- Purpose: the limits of kinds for which lanes of a queue wait, how many more jobs each lets
-- start (null for any number), and when that changes by itself.
-- Invariant: one probe for each limit, and each is counted once. Raises: nothing.
create or replace function jobq_private.awaited_limits(queue text, now timestamptz)
returns table (limit_id uuid, room integer, open_at timestamptz)
language plpgsql
stable
parallel safe
rows 10
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    with recursive awaited as (
        (
            select l.limit_id
            from jobq_private.lane as l
            where l.queue = awaited_limits.queue and l.limit_id is not null
            order by l.limit_id
            limit 1
        )
        union all
        select n.limit_id
        from awaited as a
        cross join lateral (
            select l.limit_id
            from jobq_private.lane as l
            where l.queue = awaited_limits.queue and l.limit_id > a.limit_id
            order by l.limit_id
            limit 1
        ) as n
    )
    select a.limit_id, r.room, r.open_at
    from awaited as a
    left join jobq_private.limit_state as g on g.limit_id = a.limit_id
    cross join lateral jobq_private.limit_room(null, g.kind, awaited_limits.now) as r;
end
$$;
