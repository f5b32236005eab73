-- Purpose: the gates of kinds for which lanes of a queue wait, how many more jobs each lets
-- start (null for any number), and when that changes by itself.
-- Invariant: one probe for each gate, and each is counted once. Raises: nothing.
create or replace function jobq_private.awaited_gates(queue text, now timestamptz)
returns table (gate_id uuid, room integer, open_at timestamptz)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    with recursive awaited as (
        (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id is not null
            order by l.gate_id
            limit 1
        )
        union all
        select n.gate_id
        from awaited as a
        cross join lateral (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id > a.gate_id
            order by l.gate_id
            limit 1
        ) as n
    )
    select a.gate_id, r.room, r.open_at
    from awaited as a
    left join jobq_private.gate as g on g.gate_id = a.gate_id
    cross join lateral jobq_private.gate_room(null, g.kind, awaited_gates.now) as r;
end
$$;

revoke all on function jobq_private.awaited_gates from public;

comment on function jobq_private.awaited_gates is
'The gates of kinds for which lanes of a queue wait, with how many jobs each lets start.';
