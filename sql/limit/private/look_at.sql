-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: holds off a change of the queue's limits until the commit, by one of 256 locks; where such a change is
-- under way, or what runs has not been counted since, the queue looks paused for now, so that no
-- claim waits. Raises: nothing.
create or replace function jobq_private.look_at(
    queue text, now timestamptz,
    out is_paused boolean, out is_limited boolean, out has_lanes boolean, out has_gates boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
begin
    if not pg_try_advisory_xact_lock_shared(_limits, hashtext(queue) & 255) then
        is_paused := true;
        return;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(queue);
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit) > 0,
        g.has_gates,
        exists (
            select from jobq_private.lane as l
            where l.queue = look_at.queue
            and l.state <> 'full'
            and l.open_at <= look_at.now
        )
        or exists (select from jobq_private.lane_call as c where c.queue = look_at.queue)
        or g.has_gates and exists (
            select from jobq_private.lane as l
            where l.queue = look_at.queue and l.gate_id is not null
        )
    into is_paused, is_limited, has_gates, has_lanes
    from (select exists (select from jobq_private.kind_gate as k) as has_gates) as g
    left join jobq_private.queue as q on q.queue = look_at.queue;
    is_paused := is_paused or has_gates and not jobq_private.has_counted();
end
$$;

revoke all on function jobq_private.look_at from public;

comment on function jobq_private.look_at is
'What a claim must know of a queue before it looks for jobs.';
