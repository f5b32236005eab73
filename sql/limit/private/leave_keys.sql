-- Purpose: after attempts have ended: their slots are free, those with attempts left wait again,
-- and the key of a dead job may have to wait for an operator.
-- Invariant: a concurrent claim may be about to make keys wait for a kind. So queues in which
-- jobs of limited kinds have ended are always woken. Callers pin the planner's settings.
create or replace function jobq_private.leave_keys(endings jobq_private.ending[])
returns void language plpgsql as $$
declare
    _freed uuid[] := array(select e.key_id from unnest(endings) as e);
    _dead constant jobq_private.ending[] := array(
        select e from unnest(endings) as e where e.state = 'dead' and e.concurrency_key is not null
    );
    _scopes jobq_private.scope[];
    _woken text[] := '{}'::text[];
begin
    -- apart, because most endings need nothing of this large plan
    if _dead <> '{}' then
        _scopes := array(
            select row(
                e.key_id, e.queue,
                jobq_private.key_kind(e.key_id, e.queue, e.concurrency_key, e.kind),
                e.concurrency_key
            )::jobq_private.scope
            from unnest(_dead) as e
        );
        perform jobq_private.store_hold(
            u.queue, null, u.concurrency_key, 'infinity',
            format('job %s is dead; redrive or delete it, or release the key', job_id), job_id
        )
        from jobq_private.limit_usage(_scopes, now()) as u
        cross join lateral (select (_dead[u.n]).job_id) as e
        where u.is_ordered and u.holds_on_dead;
    end if;
    if exists (
        select from jobq_private.kind as k
        where num_nonnulls(k.max_running, k.rate_limit, k.budget, k.key_max_running,
            k.key_rate_limit, k.key_budget, k.ordered) > 0
    ) then
        -- a job that started before its kind had limits for each key frees the kind's too
        _freed := _freed || array(
            select jobq_private.limit_id(null, e.kind, e.concurrency_key)
            from unnest(endings) as e
            join jobq_private.kind as k on k.kind = e.kind
            where num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget) > 0
            and e.concurrency_key is not null
        );
        _woken := array(
            select distinct w.queue
            from (select distinct e.queue, e.kind from unnest(endings) as e) as e
            join jobq_private.kind as k on k.kind = e.kind
            cross join lateral (
                select e.queue
                union all
                select f.queue from jobq_private.waiting_key as f where f.full_kind = e.kind
            ) as w
            where num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
        );
    end if;
    perform jobq_private.open_keys(
        array(select e.job_id from unnest(endings) as e where e.state in ('retrying', 'queued')),
        _freed
    );
    _woken := _woken || array(
        select q.queue from jobq_private.queue as q
        where q.queue = any(array(select e.queue from unnest(endings) as e))
        and q.max_running is not null and q.queue <> all(_woken)
    );
    if _woken <> '{}' then
        perform jobq_private.wake(_woken);
    end if;
end
$$;
