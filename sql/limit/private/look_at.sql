-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: holds off a change of the queue's limits until the commit, by one of 256 locks;
-- where such a change is under way, or what runs has not been counted since, the queue looks
-- paused for now, so that no claim waits. Hot: its callers pin the search path, and that no
-- plan is made for a call. Raises: nothing.
create or replace function jobq_private.look_at(queue text, now timestamptz)
returns jobq_private.queue_look
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _look jobq_private.queue_look;
begin
    if not pg_try_advisory_xact_lock_shared(
        jobq_private.lock_class('limiting'), hashtext(queue) & 255
    ) then
        _look.is_paused := true;
        return _look;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(queue);
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit) > 0,
        exists (select from jobq_private.in_use as u)
    into _look.is_paused, _look.is_limited, _look.is_used
    from (values (null)) as one
    left join jobq_private.queue as q on q.queue = look_at.queue;
    if _look.is_used then
        select
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
        into _look.has_gates, _look.has_lanes
        from (select exists (select from jobq_private.kind_gate as k) as has_gates) as g;
        if _look.has_gates and not _look.is_paused then
            _look.is_paused := not jobq_private.has_counted();
        end if;
    end if;
    return _look;
end
$$;

revoke all on function jobq_private.look_at from public;

comment on function jobq_private.look_at is
'What a claim must know of a queue before it looks for jobs.';
