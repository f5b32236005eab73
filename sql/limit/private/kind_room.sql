-- Purpose: how many jobs of a kind may start now, null for any number; and when that changes by
-- itself.
-- Invariant: exact for who holds the kind's gate; counts what runs, from job_place_idx. Raises:
-- nothing.
create or replace function jobq_private.kind_room(
    kind text, now timestamptz, out room integer, out open_at timestamptz
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
    _rule jobq_private.kind;
    _spacing bigint;
begin
    select g.* into _gate from jobq_private.gate as g where g.kind = kind_room.kind and g.queue is null;
    select k.* into _rule from jobq_private.kind as k where k.kind = kind_room.kind;
    if _gate.held_until > now then
        room := 0;
        open_at := _gate.held_until;
        return;
    end if;
    _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
    room := jobq_private.tokens(
        _gate.passed_until, _spacing, coalesce(_rule.rate_burst, 1), now
    );
    open_at := jobq_private.token_at(
        _gate.passed_until, _spacing, coalesce(_rule.rate_burst, 1), now
    );
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - (
            select count(*) from jobq_private.job as j
            where j.place is not null and j.kind = kind_room.kind
        )));
    end if;
end
$$;

revoke all on function jobq_private.kind_room from public;

comment on function jobq_private.kind_room is
'How many jobs of a kind may start now, and when that changes by itself.';
