-- Purpose: wake the queues in which jobs may start now under a limit of a whole queue
-- or kind, after jobs of these queues and kinds have freed slots.
-- Invariant: a concurrent claim may be about to make keys wait for a kind. Queues in
-- which jobs of limited kinds have ended are therefore always woken.
create or replace function jobq_private.wake_limited(queues text[], kinds text[])
returns void
language plpgsql
as $$
declare
    _woken constant text[] := array(
        select w.queue
        from (select distinct u.queue, u.kind from unnest(queues, kinds) as u (queue, kind)) as e
        join jobq_private.kind as k
            on k.kind = e.kind and num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
        cross join lateral (
            select e.queue
            union all
            select w.queue from jobq_private.waiting_key as w
            where w.limit_id = jobq_private.limit_id(null, e.kind, null)
        ) as w
        union
        select q.queue from jobq_private.queue as q
        where q.queue = any(wake_limited.queues) and q.max_running is not null
    );
begin
    if _woken <> '{}' then
        perform jobq_private.wake(_woken);
    end if;
end
$$;
