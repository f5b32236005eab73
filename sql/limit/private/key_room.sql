-- Purpose: how many jobs of a kind's key may start now, in whichever queue, null for any number; when
-- that changes by itself; and the job that waits again, before which no other may start.
-- Invariant: exact for who holds the gate of the key. Looks for what runs into one lane of each queue in
-- which something has a place. Raises: nothing.
create or replace function jobq_private.key_room(
    kind text, concurrency_key text, now timestamptz,
    out room integer, out open_at timestamptz, out head_job_id uuid
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
    _rule jobq_private.lane_rule;
    _gate jobq_private.gate;
begin
    select r.* into _rule from jobq_private.key_rule(key_room.kind) as r;
    select g.* into _gate
    from jobq_private.gate as g
    where g.gate_id = jobq_private.key_gate_id(key_room.kind, key_room.concurrency_key);
    room := jobq_private.tokens(_gate.passed_until, _rule.spacing, _rule.burst, now);
    open_at := jobq_private.token_at(_gate.passed_until, _rule.spacing, _rule.burst, now);
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - (
            with recursive active as (
                (
                    select j.queue from jobq_private.job as j
                    where j.place is not null
                    order by j.queue
                    limit 1
                )
                union all
                select n.queue
                from active as a
                cross join lateral (
                    select j.queue from jobq_private.job as j
                    where j.place is not null and j.queue > a.queue
                    order by j.queue
                    limit 1
                ) as n
            )
            select count(*)
            from active as a
            join jobq_private.job as j on j.queue = a.queue
                and j.lane_id = jobq_private.lane_id(a.queue, key_room.concurrency_key)
                and j.place is not null
            where j.kind = key_room.kind
        )));
    end if;
    if _rule.is_ordered then
        head_job_id := (
            select j.job_id from jobq_private.job as j
            where j.job_id = _gate.head_job_id and j.state <> 'running'
        );
    end if;
end
$$;

revoke all on function jobq_private.key_room from public;

comment on function jobq_private.key_room is
'How many jobs of a kind''s key may start now, when that changes by itself, and which goes first.';
