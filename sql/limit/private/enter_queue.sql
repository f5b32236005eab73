-- Purpose: read what a claim needs about a queue before it searches for jobs, and lock
-- the limit of the whole queue, if any, until the commit.
-- Invariant: waits for no lock: while another transaction has the limit, max_starts is
-- 0. Callers pin the planner's settings.
create or replace function jobq_private.enter_queue(queue text, now timestamptz)
returns jobq_private.queue_look language plpgsql as $$
declare
    _look jobq_private.queue_look;
    _scopes jobq_private.scope[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        -- a snapshot that is older than the last change of limits fails with 40001
        perform from jobq_private.limit_change as c where c.change_id = 1 for share skip locked;
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0,
        exists (
            select from jobq_private.kind as k
            where num_nonnulls(
                k.max_running, k.rate_limit, k.budget, k.key_max_running, k.key_rate_limit,
                k.key_budget, k.ordered
            ) > 0
        )
        or exists (
            select from jobq_private.limit_hold as h
            where h.queue = enter_queue.queue and h.held_until > enter_queue.now
        ),
        num_nonnulls(q.key_max_running, q.key_rate_limit, q.key_budget, q.ordered) > 0,
        exists (
            select from jobq_private.waiting_key as w
            where w.queue = enter_queue.queue and w.state <> 'full' and w.open_at <= enter_queue.now
        )
        or exists (
            select from jobq_private.waiting_key as w
            where w.queue = enter_queue.queue and w.full_kind is not null
        )
    into
        _look.is_paused, _look.is_limited, _look.has_kind_limits, _look.has_limits, _look.has_keys
    from (values (null)) as one
    left join jobq_private.queue as q on q.queue = enter_queue.queue;
    _look.has_limits := _look.has_limits or _look.is_limited or _look.has_kind_limits
        or _look.has_keys
        and exists (select from jobq_private.key_limit as l where l.queue = enter_queue.queue);
    if _look.is_limited and not _look.is_paused then
        _scopes := array[row(
            jobq_private.limit_id(queue, null, null), queue, null, null
        )::jobq_private.scope];
        _look.max_starts := 0;
        if jobq_private.lock_limits(_scopes, false) <> '{}' then
            _look.max_starts := (
                select r.max_starts from jobq_private.check_limits(_scopes, enter_queue.now) as r
            );
        end if;
    end if;
    return _look;
end
$$;
