-- Purpose: how many jobs of a queue may start now by the limits of the whole queue, null for
-- any number; and when that changes by itself.
-- Invariant: exact for who holds the queue's gate; counts what runs, from job_place_idx. Raises:
-- nothing.
create or replace function jobq_private.queue_room(
    queue text, now timestamptz, out room integer, out open_at timestamptz
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
    _passed_until timestamptz;
    _rule jobq_private.queue;
    _spacing bigint;
begin
    select q.* into _rule from jobq_private.queue as q where q.queue = queue_room.queue;
    if _rule.rate_limit is not null then
        _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
        select g.passed_until into _passed_until
        from jobq_private.gate as g
        where g.gate_id = jobq_private.gate_id(queue_room.queue, null);
        room := jobq_private.tokens(
            _passed_until, _spacing, coalesce(_rule.rate_burst, 1), now
        );
        open_at := jobq_private.token_at(
            _passed_until, _spacing, coalesce(_rule.rate_burst, 1), now
        );
    end if;
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - (
            select count(*) from jobq_private.job as j
            where j.queue = queue_room.queue and j.place is not null
        )));
    end if;
end
$$;

revoke all on function jobq_private.queue_room from public;

comment on function jobq_private.queue_room is
'How many jobs of a queue may start now, and when that changes by itself.';
