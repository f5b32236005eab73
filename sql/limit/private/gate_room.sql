-- Purpose: how many jobs of a whole queue (kind null) or of a whole kind (queue null) may start now,
-- null for any number; and when that changes by itself.
-- Invariant: exact for who holds the gate; counts what runs, from job_place_idx. Raises: nothing.
create or replace function jobq_private.gate_room(
    queue text, kind text, now timestamptz, out room integer, out open_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gate jobq_private.gate;
    _rule record;
    _spacing bigint;
begin
    select g.* into _gate
    from jobq_private.gate as g
    where g.gate_id = jobq_private.gate_id(gate_room.queue, gate_room.kind);
    if _gate.held_until > now then
        room := 0;
        open_at := _gate.held_until;
        return;
    end if;
    select r.* into _rule
    from (
        select q.max_running, q.rate_limit, q.rate_period, coalesce(q.rate_burst, 1) as burst
        from jobq_private.queue as q
        where q.queue = gate_room.queue
        union all
        select k.max_running, k.rate_limit, k.rate_period, coalesce(k.rate_burst, 1)
        from jobq_private.kind as k
        where k.kind = gate_room.kind
    ) as r;
    _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
    room := jobq_private.tokens(_gate.passed_until, _spacing, _rule.burst, now);
    open_at := jobq_private.token_at(_gate.passed_until, _spacing, _rule.burst, now);
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - case
            when gate_room.queue is not null then (
                select count(*) from jobq_private.job as j
                where j.queue = gate_room.queue and j.place is not null
            )
            else (
                select count(*) from jobq_private.job as j
                where j.kind = gate_room.kind and j.place is not null
            )
        end));
    end if;
end
$$;

revoke all on function jobq_private.gate_room from public;

comment on function jobq_private.gate_room is
'How many jobs of a queue or a kind may start now, and when that changes by itself.';
