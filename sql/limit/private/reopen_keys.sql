-- Purpose: after jobs of these queues, keys (null for none) and kinds have made room:
-- open the keys that were full, or may have waited for one of the jobs in an order, and
-- wake the queues in which others may start now.
-- Invariant: the protocol of close_keys(). Usually no key is closed, and nothing is
-- written. A claim may be about to have keys wait for a kind, which nobody sees yet: so
-- the queues in which jobs of limited kinds have ended are woken in any case.
create or replace function jobq_private.reopen_keys(queues text[], keys uuid[], kinds text[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _locked uuid[];
    _woken text[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _locked := array(
            select k.key_id
            from (select distinct u.key_id from unnest(reopen_keys.keys) as u (key_id)) as k
            where k.key_id is not null
            and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lock_slot(k.key_id))
        );
    end if;
    perform jobq_private.open_again(array(
        select w
        from jobq_private.waiting_key as w
        where w.key_id = any(reopen_keys.keys)
        and (
            coalesce(w.key_id <> all(_locked), true)
            or (
                w.state = 'full'
                or w.state = 'later' and exists (
                    select from jobq_private.limit_state as g
                    where g.limit_id = w.key_id and g.head_job_id is not null
                )
            )
            and not exists (
                select from jobq_private.waiting_key as o
                where o.key_id = w.key_id and o.queue = w.queue and o.priority = w.priority
                and o.state = 'open'
            )
        )
    ));
    _woken := array(
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
    ) || array(
        select q.queue from jobq_private.queue as q
        where q.queue = any(reopen_keys.queues) and q.max_running is not null
    );
    if _woken <> '{}' then
        perform jobq_private.wake(array(select distinct w.queue from unnest(_woken) as w (queue)));
    end if;
end
$$;
