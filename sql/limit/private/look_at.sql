-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: takes no lock, so no change of limits waits for a claim, nor a claim for
-- it. Index probes only. Hot: its callers pin the search path, and that no plan is made
-- for a call.
create or replace function jobq_private.look_at(queue text, now timestamptz)
returns jobq_private.queue_look
language plpgsql
as $$
declare
    _look jobq_private.queue_look;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits();
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
            select from jobq_private.limit_state as g
            where g.queue = look_at.queue and g.held_until > look_at.now
        ),
        num_nonnulls(q.key_max_running, q.key_rate_limit, q.key_budget, q.ordered) > 0,
        exists (
            select from jobq_private.waiting_key as w
            where w.queue = look_at.queue and w.state <> 'full' and w.open_at <= look_at.now
        )
        or exists (
            select from jobq_private.waiting_key as w
            where w.queue = look_at.queue and w.limit_id is not null
        )
    into
        _look.is_paused, _look.is_limited, _look.has_kind_limits, _look.has_rules, _look.has_keys
    from (values (null)) as one
    left join jobq_private.queue as q on q.queue = look_at.queue;
    _look.has_rules := _look.has_rules or _look.is_limited or _look.has_kind_limits
        or _look.has_keys
        and exists (select from jobq_private.key_limit as l where l.queue = look_at.queue);
    return _look;
end
$$;
