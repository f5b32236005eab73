-- Purpose: close keys in which a claim has found no runnable job: as full, until their next job
-- is due, or without a time; returns how many were closed. Duplicate rows are merged.
-- Invariant: a key is closed only under its exclusive lock, after a second check. A transaction
-- that adds work or frees a slot holds that lock in shared mode, then checks whether the key is
-- closed. So one of the two always sees the other, and neither waits: without the lock, the claim
-- retries the key after 5 ms, and the other transaction adds an open row.
create or replace function jobq_private.close_keys(keys jobq_private.waiting_key[])
returns bigint language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
    _scopes jobq_private.scope[];
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' or keys = '{}' then
        return 0;
    end if;
    _scopes := array(
        select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
        from unnest(keys) as k
    );
    _mine := array(
        select k.key_id from unnest(close_keys.keys) as k
        where pg_try_advisory_xact_lock(_closing, jobq_private.lock_slot(k.key_id))
    );
    with found as materialized (
        select k.key_id, k.queue, k.kind, k.concurrency_key, k.priority,
            k.key_id = any(_mine) and w.run_at is null as is_empty,
            k.key_id = any(_mine) and t.open_at <= _now
            and (r.slots = 0 or f.priority <> k.priority or f.queue <> k.queue) as is_full,
            case
                when k.key_id = any(_mine) and t.open_at > _now then t.open_at
                else clock_timestamp() + interval '5 ms'
            end as open_at
        from unnest(close_keys.keys) with ordinality as k
        join jobq_private.check_limits(_scopes, _now) as r on r.n = k.ordinality
        -- the first of an order, which may wait elsewhere, and the next one here
        left join lateral (
            select j.*
            from jobq_private.job as j
            where j.job_id = r.first_job_id and j.state <> 'running'
            limit 1  -- or all jobs might be read, for a hash
        ) as f on true
        left join lateral (
            select j.run_at, j.cost
            from jobq_private.job as j
            where j.queue = k.queue and j.key_id = k.key_id and j.priority = k.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at, j.job_id
            limit 1
        ) as w on true
        cross join lateral (
            select greatest(
                case
                    when f.priority = k.priority and f.queue = k.queue then f.run_at
                    else w.run_at
                end,
                r.opens_at,
                case when coalesce(f.cost, w.cost, 1) > r.budget_left then r.period_end end
            )
        ) as t (open_at)
    ),
    gone as (
        delete from jobq_private.waiting_key as w
        where w.ctid = any(array(
            select o.ctid
            from unnest(close_keys.keys) as k
            join jobq_private.waiting_key as o
                on o.key_id = k.key_id and o.queue = k.queue and o.priority = k.priority
            for update of o skip locked
        ))
        returning w.key_id
    ),
    closed as (
        insert into jobq_private.waiting_key (
            key_id, queue, kind, concurrency_key, priority, state, open_at
        )
        select
            f.key_id, f.queue, f.kind, f.concurrency_key, f.priority,
            case when f.is_full then 'full' else 'later' end,
            case when f.is_full then '-infinity' else f.open_at end
        from found as f
        where not f.is_empty and f.key_id in (select g.key_id from gone as g)
    )
    select count(distinct g.key_id) into _closed from gone as g;
    return _closed;
end
$$;
