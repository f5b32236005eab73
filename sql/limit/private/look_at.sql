-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: takes no lock, so no change of limits waits for a claim, nor a claim for it. Hot: its
-- callers pin the search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.look_at(queue text, now timestamptz)
returns jobq_private.queue_look
language plpgsql
as $$
declare
    _look jobq_private.queue_look;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(queue);
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0,
        exists (select from jobq_private.in_use as u)
    into _look.is_paused, _look.is_limited, _look.is_used
    from (values (null)) as one
    left join jobq_private.queue as q on q.queue = look_at.queue;
    if _look.is_used then
        select
            g.has_kind_limits,
            exists (
                select from jobq_private.lane as l
                where l.queue = look_at.queue
                and l.state <> 'full'
                and l.open_at <= look_at.now
            )
            or exists (select from jobq_private.lane_call as c where c.queue = look_at.queue)
            or g.has_kind_limits and exists (
                select from jobq_private.lane as l
                where l.queue = look_at.queue and l.limit_id is not null
            )
        into _look.has_kind_limits, _look.has_lanes
        from (
            select exists (
                select from jobq_private.known_limit as k where k.limit_id is not null
            ) as has_kind_limits
        ) as g;
    end if;
    return _look;
end
$$;
