-- Deploy jobq:limit to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop routine if exists jobq_private.limit_usage;

-- Purpose: the limits that prevent a job from starting now, with their reasons: held,
-- rate_limited, budget, ordered_behind, queue_busy, kind_busy or key_busy; no row if the job may
-- start.
-- Invariant: exact only for a caller that has locked the limits.
create or replace function jobq_private.blocking_limits(job jobq_private.job, now timestamptz)
returns table (reason text, explanation text) language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    _cost constant numeric := coalesce(job.cost, 1);
    _scopes constant jobq_private.scope[] := array(select l from jobq_private.job_limits(job) as l);
begin
    return query
    select b.reason, b.explanation
    from jobq_private.check_limits(_scopes, blocking_limits.now) as r
    cross join lateral (
        select concat_ws(', ', coalesce('kind ' || r.kind, 'queue ' || r.queue),
            'concurrency_key ' || r.concurrency_key) as name
    ) as n
    left join lateral (
        select nullif(coalesce(r.first_job_id, (
            select w.job_id
            from jobq_private.job as w
            where w.queue = job.queue and w.key_id = job.key_id
            and w.state in ('queued', 'retrying')
            and w.run_at <= blocking_limits.now
            and (
                w.priority > job.priority
                or w.priority = job.priority and (w.run_at, w.job_id) < (job.run_at, job.job_id)
            )
            limit 1
        )), job.job_id) as job_id
    ) as f on r.is_ordered
    cross join lateral (
        values
        ('held', r.held_until is not null, format(
            '%s, held until %s',
            concat_ws(': ', case
                when r.concurrency_key is not null
                then format('queue %s, concurrency_key %s', job.queue, r.concurrency_key)
                else format('kind %s in queue %s', job.kind, job.queue)
            end, r.hold_reason),
            case
                when isfinite(r.held_until) then date_trunc('second', r.held_until)::text
                else 'it is released'
            end
        )),
        ('rate_limited', r.rate_opens_at is not null, format(
            '%s: the next starts at %s', n.name, date_trunc('second', r.rate_opens_at)
        )),
        ('budget', _cost > r.budget_left, format(
            '%s: %s of %s reserved or spent, this job costs %s; %s', n.name, r.spent, (r.budget).amount, _cost,
            case
                when _cost > (r.budget).amount then 'raise the budget, or cancel the job'
                else format('the next period begins at %s', date_trunc('second', r.period_end))
            end
        )),
        ('ordered_behind', f.job_id is not null, format('%s: job %s goes first', n.name, f.job_id)),
        (
            case
                when r.concurrency_key is not null then 'key_busy'
                when r.kind is not null then 'kind_busy'
                else 'queue_busy'
            end,
            r.slots = 0,
            n.name || format(': %s at once, and so many run', r.max_running) || coalesce(': ' || (
                select string_agg(format('job %s on %s', h.job_id, h.worker), ', ')
                from (
                    select o.job_id, o.worker
                    from jobq_private.job as o
                    where r.slots = 0 and o.slot is not null
                    and case
                        when r.kind is null then o.queue = r.queue and o.key_id = r.limit_id
                        else o.kind = r.kind and o.concurrency_key = r.concurrency_key
                    end
                    limit 3
                ) as h
            ), '')
        )
    ) as b (reason, is_so, explanation)
    where b.is_so
    order by r.n;
end
$$;

-- Purpose: charge the costs of jobs that start to their limits, to that of the whole queue only
-- if is_limited, and record the last job that started in an ordered key. Raw SQL may move a job
-- as it starts: limits are then those that it has now. For a running job, correction is the
-- difference to what was charged before.
-- Invariant: the caller has locked the limits. Uses the clock after the starts. A refund is at
-- most the debt of the rate, and for a budget the charges of its current period since
-- charged_since. Limits that span keys or queues are also written, so that an older repeatable
-- snapshot fails. Callers pin the planner's settings.
create or replace function jobq_private.charge(
    job_ids uuid[], is_limited boolean, limits uuid[] default null,
    correction numeric default null, charged numeric default null
)
returns void language plpgsql as $$
declare
    _scopes jobq_private.scope[];
    _costs numeric[];
    _starts timestamptz[];
    _last_ids uuid[];
    _now constant timestamptz := clock_timestamp();
begin
    select
        array_agg(row(o.limit_id, o.queue, o.kind, o.concurrency_key)::jobq_private.scope),
        array_agg(a.cost), array_agg(a.claimed_at), array_agg(a.last_id)
    into _scopes, _costs, _starts, _last_ids
    from (
        select
            l.limit_id, sum(coalesce(charge.correction, j.cost, 1)) as cost,
            max(j.claimed_at) as claimed_at,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last_id
        from jobq_private.job as j
        cross join lateral (
            select unnest(charge.limits) as limit_id
            union all
            select j.key_id
            where charge.limits is null and j.concurrency_key is not null
            union all
            select o.limit_id
            from jobq_private.job_limits(j) as o
            where charge.limits is null and o.concurrency_key is null
            and (charge.is_limited or o.kind is not null)
        ) as l
        where j.job_id = any(charge.job_ids)
        group by l.limit_id
    ) as a
    join jobq_private.limit_state as o on o.limit_id = a.limit_id;
    update jobq_private.limit_state as g
    set
        rate_used = case when n.rate is not null then greatest(0, n.rate_used + case
            when n.cost >= 0 then n.cost
            when n.started_at >= n.charged_since then greatest(n.cost, least(
                0, extract(epoch from _now - n.started_at) * n.rate - charge.charged
            ))
            else 0
        end) end,
        spent = case when (n.budget).amount is not null then greatest(0, n.spent + case
            when n.cost >= 0 or n.started_at >= greatest(n.charged_since, n.period_start)
            then n.cost
            else 0
        end) end,
        charged_at = _now,
        charged_since = case
            when n.rate is not null and g.rate_used is null
                or (n.budget).amount is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        first_job_id = case when n.is_ordered then _last_ids[n.n] end
    from (
        select u.*, _costs[u.n] as cost, _starts[u.n] as started_at
        from jobq_private.limit_usage(_scopes, _now) as u
        where u.is_charged
    ) as n
    where g.limit_id = n.limit_id;
end
$$;

-- Purpose: for each of these limits, the nth: the number of free slots, the cost that rate and
-- budget still allow (null for any), how many jobs of cost 1 may start, when that changes by
-- itself, and the only job that may start in an ordered key. Inlined if the arguments are
-- variables, so no SET clause.
-- Invariant: exact for a caller that has locked the limits, because it counts rows. Cheaper jobs
-- wait behind one that did not fit into a budget, as long as a claim finds that job again every
-- 10 s.
create or replace function jobq_private.check_limits(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, max_starts integer,
    slots integer, used_slots smallint[], rate_left integer, budget_left numeric,
    opens_at timestamptz, rate_opens_at timestamptz, first_job_id uuid, held_until timestamptz,
    hold_reason text, max_running integer, is_ordered boolean, budget jobq_private.budget,
    spent numeric, period_end timestamptz, is_charged boolean
)
language sql stable as $$
    with uncounted as materialized (
        select w.* from jobq_private.running_without_slot() as w
    )
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case when h.held_until is null and not t.is_spent then least(c.slots, t.rate_left) else 0 end,
        c.slots, o.slots, t.rate_left, t.budget_left,
        greatest(
            h.held_until, t.rate_opens_at,
            case when t.is_spent then least(s.period_end, s.next_until) end
        ),
        t.rate_opens_at, j.job_id, h.held_until, h.reason, s.max_running, s.is_ordered, s.budget,
        s.spent, s.period_end, s.is_charged
    from jobq_private.limit_usage(check_limits.scopes, check_limits.now) as s
    left join lateral (
        select h.held_until, h.reason
        from jobq_private.limit_hold as h
        where h.held_until > check_limits.now
        and h.limit_id = case
            when s.kind is null then s.limit_id
            when s.queue is not null then jobq_private.limit_id(
                s.queue, case when s.concurrency_key is null then s.kind end, s.concurrency_key
            )
        end
        order by h.held_until desc, h.hold_id desc
        limit 1
    ) as h on true
    left join lateral (
        select j.job_id
        from jobq_private.job as j
        where s.is_ordered
        and j.job_id = s.first_job_id and j.key_id = s.limit_id and j.state <> 'blocked'
        limit 1  -- or all jobs might be read, for a hash
    ) as j on true
    cross join lateral (
        select
            -- a millionth of a unit is rounding
            case
                when s.rate is not null then greatest(0, floor(s.burst - s.rate_used + 1e-6))::integer
            end as rate_left,
            case
                when floor(s.burst - s.rate_used + 1e-6) <= 0 then check_limits.now
                    + interval '1 us' * (1 + least(1e15, (1 - s.burst + s.rate_used) / s.rate * 1e6))
            end as rate_opens_at,
            (s.budget).amount - s.spent as budget_left,
            coalesce((s.budget).amount - s.spent < coalesce(s.next_cost, 0), false) as is_spent
    ) as t
    cross join lateral jobq_private.used_slots(
        s.limit_id, s.queue, s.kind, s.concurrency_key, s.max_running
    ) as o
    cross join lateral (
        select case when s.max_running is not null then greatest(
            0, s.max_running - cardinality(o.slots)
            - case when exists (table uncounted) then (
                select count(*)
                from uncounted as r
                where coalesce(r.kind = s.kind, r.queue = s.queue) and (
                    s.concurrency_key is null
                    or r.concurrency_key = s.concurrency_key
                    and (s.kind is not null or r.key_id = s.limit_id)
                )
            ) else 0 end
        )::integer end as slots
        offset 0
    ) as c
$$;

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

-- Purpose: the kind to which the key of a job belongs; null if it belongs to the queue.
-- Derived from its key_id, not from the current declaration. Inlined, so no SET clause.
create or replace function jobq_private.key_kind(
    key_id uuid, queue text, concurrency_key text, kind text
)
returns text language sql immutable as $$
    select case when key_id <> jobq_private.limit_id(queue, null, concurrency_key) then kind end
$$;

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

-- Purpose: the limits of these scopes, n by n, and their usage: of a rate (in units of cost per
-- second), the level of its leaky bucket; of a budget, the charges of its current period; and
-- whether starts must be charged. Inlined if the arguments are variables, so no SET clause;
-- offset 0: evaluated once.
-- Invariant: one row for each. A limit of a single key replaces the queue's limit for each key.
create or replace function jobq_private.limit_usage(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, max_running integer,
    is_ordered boolean, holds_on_dead boolean, rate double precision, burst integer,
    rate_used double precision, budget jobq_private.budget, period_start timestamptz,
    period_end timestamptz, spent numeric, next_cost numeric, next_until timestamptz,
    charged_since timestamptz, first_job_id uuid, is_charged boolean
)
language sql stable as $$
    with declared as materialized (
        select o.*, d.*, o.is_key and o.kind is null and (
            select true from jobq_private.key_limit as l where l.queue = o.queue limit 1
        ) as has_own_limits
        from (
            select distinct s.queue, s.kind, s.concurrency_key is not null as is_key
            from unnest(limit_usage.scopes) as s
        ) as o
        left join lateral (
            select q.key_max_running as max_running, q.key_rate_limit as rate_limit,
                q.key_rate_period as rate_period, q.key_rate_burst as rate_burst,
                q.key_budget as budget, q.ordered, q.on_dead
            from jobq_private.queue as q
            where o.is_key and o.kind is null and q.queue = o.queue
            union all
            select q.max_running, q.rate_limit, q.rate_period, q.rate_burst, q.budget, false, null
            from jobq_private.queue as q
            where not o.is_key and o.kind is null and q.queue = o.queue
            union all
            select k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
                k.key_budget, k.ordered, k.on_dead
            from jobq_private.kind as k
            where o.is_key and k.kind = o.kind
            union all
            select k.max_running, k.rate_limit, k.rate_period, k.rate_burst, k.budget, false, null
            from jobq_private.kind as k
            where not o.is_key and o.queue is null and k.kind = o.kind
        ) as d on true
    )
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case when d.ordered then 1 else coalesce(l.max_running, d.max_running) end,
        coalesce(d.ordered, false), coalesce(d.on_dead = 'hold', false), u.rate,
        coalesce(case when l.rate_limit is null then d.rate_burst else l.rate_burst end, 1),
        case
            when u.rate is null then null
            -- a later charge comes from a clock that was set back
            when g.charged_at <= limit_usage.now + interval '10 s' then greatest(
                0, coalesce(g.rate_used, 0)
                - u.rate * greatest(0, date_part('epoch', limit_usage.now - g.charged_at))
            )
            else 0
        end,
        u.budget, p.start_at, p.end_at,
        case when g.charged_at >= p.start_at then coalesce(g.spent, 0) else 0 end,
        case when g.next_until > limit_usage.now then g.next_cost end,
        case when g.next_until > limit_usage.now then g.next_until end,
        g.charged_since, g.first_job_id,
        not d.is_key or coalesce(d.ordered, false) or num_nonnulls(u.rate, u.budget, s.kind) > 0
    from unnest(limit_usage.scopes)
        with ordinality as s (limit_id, queue, kind, concurrency_key, n)
    join declared as d
        on d.is_key = (s.concurrency_key is not null)
        and coalesce(d.queue, '') = coalesce(s.queue, '')
        and coalesce(d.kind, '') = coalesce(s.kind, '')
    -- The limits keep the planner from reading whole tables, for a hash.
    left join lateral (
        select l.*
        from jobq_private.key_limit as l
        where d.has_own_limits and l.queue = s.queue and l.concurrency_key = s.concurrency_key
        limit 1
    ) as l on true
    cross join lateral (
        select
            coalesce(l.rate_limit, d.rate_limit) / date_part('epoch', coalesce(
                case when l.rate_limit is null then d.rate_period else l.rate_period end, '1 s'
            )) as rate,
            case when l.budget is null then d.budget else l.budget end as budget
    ) as u
    left join lateral (
        select g.*
        from jobq_private.limit_state as g
        where (d.ordered or num_nonnulls(u.rate, u.budget) > 0) and g.limit_id = s.limit_id
        limit 1
    ) as g on true
    left join lateral jobq_private.budget_period(u.budget, limit_usage.now) as p on true
    offset 0
$$;

-- Purpose: open the keys of a queue that are due. Of those that wait for the limit of a kind,
-- open as many of the highest priority as the limit allows to start, from the last key on that
-- the session has claimed from.
-- Invariant: bounded; skips locked rows. Callers pin the planner's settings.
create or replace function jobq_private.open_due_keys(queue text, now timestamptz, last_key uuid)
returns void language plpgsql as $$
declare
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _rows tid[];
begin
    _rows := array(
        select w.ctid
        from jobq_private.waiting_key as w
        where w.queue = open_due_keys.queue
        and w.state <> 'full'
        and w.open_at > '-infinity'
        and w.open_at <= open_due_keys.now
        order by w.open_at
        limit 200
        for update skip locked
    ) || array(
        select w.ctid
        from jobq_private.awaited_limits(open_due_keys.queue, open_due_keys.now) as a
        cross join lateral (
            select max(p.priority) as priority
            from jobq_private.waiting_key as p
            where p.queue = open_due_keys.queue and p.full_kind = a.kind
        ) as p
        cross join lateral (
            select o.ctid
            from (values (last_key, _top), (_bottom, last_key)) as t (low, high)
            cross join lateral (
                select o.ctid
                from jobq_private.waiting_key as o
                where o.queue = open_due_keys.queue and o.full_kind = a.kind
                and o.priority = p.priority and o.key_id > t.low and o.key_id <= t.high
                order by o.key_id
                limit least(greatest(a.max_starts, 1), 100)
                for update skip locked
            ) as o
            limit least(greatest(a.max_starts, 1), 100)
        ) as w
        where coalesce(a.max_starts, 1) > 0
    );
    if _rows <> '{}' then
        update jobq_private.waiting_key as w
        set state = 'open', open_at = '-infinity', full_kind = null
        where w.ctid = any(_rows);
    end if;
end
$$;

-- Purpose: return those of a claim's locked jobs that the limits of their kinds and of the queue
-- allow to start. The keys of the others wait for the limit of their kind (closed counts them);
-- jobs in a wrong key are moved.
-- Invariant: running jobs of a kind are counted after its limit was locked; the caller has locked
-- the queue's. No job overtakes another of its key. A job that does not fit into a budget makes
-- others wait.
create or replace function jobq_private.pass_limits(
    queue text, inout jobs tid[], inout slots smallint[], look jobq_private.queue_look,
    out closed bigint
)
language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
    _scopes jobq_private.scope[];
    _locked uuid[];
begin
    select cardinality(pass_limits.jobs) - cardinality(m.jobs), m.jobs, m.slots
    into pass_limits.closed, pass_limits.jobs, pass_limits.slots
    from jobq_private.move_jobs(jobs, slots) as m;
    if jobs = '{}' then
        return;
    end if;
    _scopes := array(
        select distinct l from jobq_private.job as j
        cross join lateral jobq_private.job_limits(j) as l
        where j.ctid = any(jobs) and num_nonnulls(l.queue, l.concurrency_key) = 0
    );
    _locked := jobq_private.lock_limits(_scopes, false);
    if look.is_limited then
        _locked := _locked || jobq_private.limit_id(pass_limits.queue, null, null);
        _scopes := _scopes
            || row(_locked[cardinality(_locked)], pass_limits.queue, null, null)::jobq_private.scope;
    end if;
    with allowed as materialized (
        select r.*, r.limit_id = any(_locked) as is_locked
        from jobq_private.check_limits(_scopes, _now) as r
    ),
    candidate as materialized (
        select
            u.job, u.slot, u.n, j.key_id, j.priority, j.run_at, r.limit_id, r.kind, r.is_locked,
            r.budget_left, c.cost,
            r.limit_id is null or r.is_locked
            and coalesce(r.max_starts > 0, true)
            and coalesce(row_number() over l <= r.slots, true)
            and coalesce(sum(c.cost) over l - c.cost < r.rate_left, true)
            and coalesce(sum(c.cost) over l <= r.budget_left, true) as fits
        from unnest(pass_limits.jobs, pass_limits.slots) with ordinality as u (job, slot, n)
        join jobq_private.job as j on j.ctid = u.job
        cross join lateral (select coalesce(j.cost, 1) as cost) as c
        left join allowed as r on r.kind is null or r.kind = j.kind
        window l as (partition by r.limit_id order by u.n)
    ),
    passed as materialized (
        select c.*, bool_and(c.fits) over (partition by c.key_id order by c.n) as may_pass
        from candidate as c
    ),
    filled as (
        update jobq_private.limit_state as g
        set next_cost = c.cost, next_until = clock_timestamp() + interval '10 s'
        from (
            select p.*, sum(p.cost) filter (where p.may_pass) over l as passed
            from passed as p
            window l as (partition by p.limit_id order by p.n)
        ) as c
        where g.limit_id = c.limit_id and c.is_locked and not c.may_pass
        and coalesce(c.passed, 0) + c.cost > c.budget_left
    ),
    shut as (
        update jobq_private.waiting_key as w
        -- only a job that goes before the one that waits opens the key
        set state = 'full', full_kind = s.kind, open_at = s.run_at
        from (
            select distinct on (p.key_id) p.*
            from passed as p
            where not p.may_pass and not p.fits
            order by p.key_id, p.n, p.kind nulls last
        ) as s
        cross join lateral (  -- not in an array, for which PostgreSQL would read the whole table
            select o.ctid from jobq_private.waiting_key as o
            where o.key_id = s.key_id and o.queue = pass_limits.queue and o.priority = s.priority
            for update skip locked
        ) as o
        where s.kind is not null and s.is_locked and w.ctid = o.ctid
        returning w.key_id
    )
    select coalesce(array_agg(p.job order by p.n), '{}'), array_agg(p.slot order by p.n),
        pass_limits.closed + (select count(distinct s.key_id) from shut as s)
    into pass_limits.jobs, pass_limits.slots, pass_limits.closed
    from (select distinct p.job, p.slot, p.n from passed as p where p.may_pass) as p;
end
$$;

-- Purpose: delete limits without usage, and expired holds. Returns the number of rows.
-- Invariant: reads a sample of limits. Keeps those with waiting jobs, so that no claim finds them
-- locked; those charged within a minute, so that a repeatable snapshot that has not seen that
-- start fails at them; and those of an order whose first job lives, or holds the key until its
-- redrive.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint language plpgsql as $$
declare
    _percent constant double precision := (
        select least(100, 1000.0 * max_rows / greatest(1, c.reltuples))
        from pg_class as c
        where c.oid = 'jobq_private.limit_state'::regclass
    );
    _scopes constant jobq_private.scope[] := array(
        select row(o.limit_id, o.queue, o.kind, o.concurrency_key)::jobq_private.scope
        from jobq_private.limit_state as o tablesample system (_percent)
        where coalesce(o.charged_at < now() - interval '1 min', true)
        order by random() limit prune_limits.max_rows  -- limit_usage() compares it with all queues
    );
    _pruned bigint;
begin
    with forgotten as (
        delete from jobq_private.limit_state as g
        where g.ctid = any(array(
            select o.ctid
            from jobq_private.limit_usage(_scopes, now()) as u
            join jobq_private.limit_state as o on o.limit_id = u.limit_id
            where coalesce(u.rate_used, 0) = 0 and u.spent = 0
            and coalesce(o.charged_at < now() - interval '1 min', true)
            and not exists (select from jobq_private.job as j where j.job_id = o.first_job_id)
            and not exists (
                select from jobq_private.limit_hold as h where h.dead_job_id = o.first_job_id
            )
            and not exists (
                select from jobq_private.waiting_key as w
                where w.key_id = o.limit_id or w.full_kind = o.kind
            )
            for update of o skip locked
        ))
        returning 1
    ),
    ended as (
        delete from jobq_private.limit_hold as h
        where h.ctid = any(array(
            select o.ctid
            from jobq_private.limit_hold as o
            where o.held_until < now()
            limit prune_limits.max_rows
            for update skip locked
        ))
        returning 1
    )
    select count(*) into _pruned from (table forgotten union all table ended) as p;
    return _pruned;
end
$$;

-- Purpose: the running jobs without a slot that limits may have to count.
-- Invariant: a change of limits waits for no transaction, so jobs that started before it, or in a
-- transaction that was open then, are counted one by one until number_running() gives them slots.
-- Reads one row while limit_change has only its first.
create or replace function jobq_private.running_without_slot()
returns setof jobq_private.job language sql stable as $$
    select j.*
    from jobq_private.job as j
    where exists (select from jobq_private.limit_change as c where c.change_id > 1)
    and j.state = 'running'
    and j.slot is null
    and (
        j.concurrency_key is not null
        or exists (
            select from jobq_private.queue as q where q.queue = j.queue and q.max_running is not null
        )
        or exists (
            select from jobq_private.kind as k where k.kind = j.kind and k.max_running is not null
        )
    )
$$;

-- Purpose: of each of these keys, its next due jobs and the slots that they get; with the keys
-- that are idle: there was none, or none may start.
-- Invariant: locks the keys' limits, if any apply, then counts free slots. One job of each key
-- while there are keys for all that is wanted (what is locked beyond that is left); else equal
-- shares. is_charged: limits of these keys record starts. skipped: keys locked by others,
-- unwanted kinds. The keys have one queue and one priority.
create or replace function jobq_private.take_jobs(
    keys jobq_private.waiting_key[], wanted integer, has_limits boolean, kinds text[],
    except_kinds text[], out jobs tid[], out slots smallint[],
    out is_charged boolean, out idle jobq_private.waiting_key[], out skipped integer
)
language plpgsql as $$
declare
    _now timestamptz;
    _share integer;
    _first constant jobq_private.waiting_key := keys[1];
    _picked constant integer := cardinality(keys);
    _locked uuid[];
    _scopes jobq_private.scope[];
begin
    if has_limits then
        _scopes := array(
            select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
            from unnest(take_jobs.keys) as k
        );
        _locked := jobq_private.lock_limits(_scopes, false);
        if cardinality(_locked) < _picked then
            keys := array(select k from unnest(take_jobs.keys) as k where k.key_id = any(_locked));
            _scopes := array(select s from unnest(_scopes) as s where s.limit_id = any(_locked));
        end if;
    end if;
    _now := clock_timestamp();
    _share := case cardinality(keys)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / greatest(1, cardinality(keys)))
    end;
    with seen as materialized (
        select
            r.n, j.job, row_number() over key as k, r.is_charged,
            (case
                when r.free_slots is null then row_number() over key
                else r.free_slots[row_number() over key]
            end)::smallint as slot,
            coalesce(take_jobs.kinds is null or j.kind = any(take_jobs.kinds), false)
            and coalesce(j.kind <> all(take_jobs.except_kinds), true) as is_wanted,
            -- a rate lets a job start while a unit is left, a budget while the whole cost is
            coalesce(sum(j.cost) over key - j.cost < r.rate_left, true)
            and coalesce(sum(j.cost) over key <= r.budget_left, true) as fits
        from (
            select
                r.n, r.limit_id as key_id, r.max_starts, r.rate_left, r.budget_left, r.first_job_id,
                r.is_charged, case when r.used_slots <> '{}' then array(
                    select s from generate_series(  -- the lowest
                        1, cardinality(r.used_slots) + least(_share, r.max_starts)
                    ) as s
                    where s <= 32767 and s <> all(r.used_slots)
                ) end as free_slots  -- null: all
            from jobq_private.check_limits(_scopes, _now) as r
            union all
            select k.ordinality, k.key_id, null, null, null, null, null, '{}'
            from unnest(take_jobs.keys) with ordinality as k
            where not has_limits
        ) as r
        cross join lateral (
            select j.ctid as job, j.kind, j.run_at, j.job_id,
                case when num_nonnulls(r.rate_left, r.budget_left) > 0 then coalesce(j.cost, 1) end
                    as cost
            from jobq_private.job as j
            where j.queue = _first.queue
            and j.key_id = r.key_id
            and j.priority = _first.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= _now
            and (r.first_job_id is null or j.job_id = r.first_job_id)
            order by j.run_at, j.job_id
            limit least(_share, r.max_starts)
            for update skip locked
        ) as j
        window key as (partition by r.n order by j.run_at, j.job_id)
    )
    select
        coalesce(array_agg(t.job) filter (where t.is_wanted), '{}'),
        array_agg(t.slot) filter (where t.is_wanted),
        bool_or(t.is_charged),
        array(
            select take_jobs.keys[n] from generate_subscripts(take_jobs.keys, 1) as n
            where n not in (select s.n from seen as s where s.fits)
        ),
        _picked - cardinality(take_jobs.keys) + count(*) filter (where not t.is_wanted)
    into take_jobs.jobs, take_jobs.slots, take_jobs.is_charged, take_jobs.idle, take_jobs.skipped
    from (select s.* from seen as s where s.fits order by s.k, s.n limit wanted) as t;
end
$$;

-- Purpose: the slots of the running jobs under a limit; none of a total without max_running.
-- Invariant: reads rows with the snapshot of the statement, so no counter can leak. For a key of
-- a kind, includes jobs that started before the kind had limits for keys. Inlined, so no SET
-- clause.
create or replace function jobq_private.used_slots(
    limit_id uuid, queue text, kind text, concurrency_key text, max_running integer default null
)
returns table (slots smallint[]) language sql stable rows 1 as $$
    select case
        when num_nonnulls(queue, kind, concurrency_key, max_running) = 1 then '{}'
        when used_slots.kind is not null and used_slots.concurrency_key is not null then array(
            select j.slot from jobq_private.job as j
            where j.kind = used_slots.kind and j.concurrency_key = used_slots.concurrency_key
            and j.slot is not null
        )
        when used_slots.kind is not null then array(
            select j.slot from jobq_private.job as j
            where j.kind = used_slots.kind and j.slot is not null
        )
        when used_slots.concurrency_key is not null then array(
            select j.slot from jobq_private.job as j
            where j.queue = used_slots.queue and j.key_id = used_slots.limit_id
            and j.slot is not null
        )
        else array(
            select j.slot from jobq_private.job as j
            where j.queue = used_slots.queue and j.slot is not null
        )
    end
    offset 0
$$;

-- Purpose: Lists the limits of single concurrency keys, with how many jobs of each run.
-- Invariant: reads only. Raises: nothing.
-- Argument queue: only of this queue; null means all.
-- Column updated_at: when the limit was set.
-- Returns: a row for each limit.
-- Example: select * from jobq_internal.list_limits('mail');
create or replace function jobq_internal.list_limits(queue text default null)
returns table (
    queue text,
    concurrency_key text,
    max_running integer,
    rate_limit integer, rate_period interval, rate_burst integer,
    running bigint, updated_at timestamptz
)
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
    select
        l.queue, l.concurrency_key, l.max_running, l.rate_limit, l.rate_period,
        l.rate_burst, cardinality(r.slots)::bigint, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral jobq_private.used_slots(
        jobq_private.limit_id(l.queue, null, l.concurrency_key), l.queue, null, l.concurrency_key
    ) as r
    where (list_limits.queue is null or l.queue = list_limits.queue)
    and num_nonnulls(l.max_running, l.rate_limit) > 0
    order by l.queue, l.concurrency_key
$$;
grant execute on function jobq_internal.list_limits to jobq_operator, jobq_reader;

comment on function jobq_internal.list_limits is 'Lists the limits of single concurrency keys, with how many jobs of each run.';

-- Purpose: Sets or removes a budget: what the jobs of a queue or kind, of each of its
-- keys, or of one key of a queue may cost in each calendar day, week or month.
-- Invariant: one budget for each of these, the last writer wins; applies to the next
-- start. Counts jobs that start after its creation. Raises: 22004, 22023, 42501, JQ007, JQ009.
-- Argument scope_type: queue or kind.
-- Argument scope: the name of the queue or kind; a kind must be declared.
-- Argument amount: what may be spent in a period, at least 0; null for no budget.
-- Argument period: day, week (from Monday) or month.
-- Argument time_zone: in which the period begins at midnight, such as Europe/Berlin.
-- Argument concurrency_key: the key of the queue whose budget it is, instead of that of each key.
-- Argument each_key: whether the budget is that of each concurrency key.
-- Returns: nothing.
-- Example: select jobq.put_budget('queue', 'llm', 1000000, 'day', 'Europe/Berlin');
create or replace function jobq.put_budget(
    scope_type text, scope text, amount numeric default null, period text default 'month',
    time_zone text default 'UTC', concurrency_key text default null, each_key boolean default false
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _problem constant text := case
        when put_budget.scope_type not in ('queue', 'kind') then 'scope_type must be queue or kind'
        when put_budget.scope_type = 'queue'
            and (
                length(put_budget.scope) not between 1 and 128
                or right(put_budget.scope, 1) = '*'
            )
        then 'queue must have 1 to 128 characters, and must not end in *'
        when not put_budget.amount between 0 and 1000000000000000
        then 'amount must be a number from 0 to 10^15'
        when put_budget.period not in ('day', 'week', 'month')
        then 'period must be day, week or month'
        when octet_length(put_budget.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when put_budget.each_key and put_budget.concurrency_key is not null
        then 'a budget is that of one key or that of each, not both'
        when put_budget.concurrency_key is not null and put_budget.scope_type = 'kind'
        then 'the keys of a kind share one budget for each: give each_key'
    end;
    _budget jobq_private.budget;
begin
    perform jobq_private.check_given(
        'scope_type, scope, period, time_zone and each_key',
        num_nulls(scope_type, scope, period, time_zone, each_key)
    );
    perform jobq_private.check_argument(_problem);
    perform jobq_private.check_worked('{}', case scope_type when 'queue' then scope end);
    perform jobq_private.check_problem('INVALID_TIME_ZONE', case
        when not exists (
            select from pg_timezone_names as z where z.name = put_budget.time_zone
        )
        then put_budget.time_zone
    end);
    if put_budget.amount is not null then
        _budget := row(put_budget.amount, put_budget.period, put_budget.time_zone);
    end if;
    if put_budget.scope_type = 'kind' then
        update jobq_private.kind as k
        set
            budget = case when put_budget.each_key then k.budget else _budget end,
            key_budget = case when put_budget.each_key then _budget else k.key_budget end
        where k.kind = put_budget.scope;
        perform jobq_private.check_problem('KIND_NOT_FOUND', case
            when not found then format('kind %s', scope)
        end);
    elsif put_budget.concurrency_key is null then
        insert into jobq_private.queue as q (queue)
        values (put_budget.scope)
        on conflict on constraint queue_pkey do nothing;
        update jobq_private.queue as q
        set
            budget = case when put_budget.each_key then q.budget else _budget end,
            key_budget = case when put_budget.each_key then _budget else q.key_budget end
        where q.queue = put_budget.scope;
    else
        insert into jobq_private.key_limit as l (queue, concurrency_key, budget)
        values (put_budget.scope, put_budget.concurrency_key, _budget)
        on conflict on constraint key_limit_pkey do update
        set budget = excluded.budget, updated_at = now();
        delete from jobq_private.key_limit as l
        where l.queue = put_budget.scope and l.concurrency_key = put_budget.concurrency_key
        and num_nonnulls(l.max_running, l.rate_limit, l.budget) = 0;
    end if;
    perform jobq_private.record_audit(
        'put_budget', concat_ws(
            ' ', put_budget.scope_type, put_budget.scope, put_budget.concurrency_key,
            case when put_budget.each_key then '(each key)' end
        ),
        coalesce(
            put_budget.amount || ' per ' || put_budget.period || ', ' || put_budget.time_zone, 'none'
        )
    );
end
$$;
grant execute on function jobq.put_budget to jobq_operator;

comment on function jobq.put_budget is 'Sets or removes a budget: what the jobs of a queue or kind, of each of its keys, or of one key of a queue may cost in each calendar day, week or month.';

-- Purpose: Sets how many jobs of one concurrency key may run at once in a queue, and how many may
-- start per period. Replaces both. Without either, the queue's limits for each key apply again.
-- Invariant: applies to the next start, and running jobs continue. Raises: 22004, 22023, 42501.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: maximum number of its jobs that run at once in the queue, 1 to
-- 32767; null means the queue's key_max_running.
-- Argument rate_limit: how many of its jobs start in each rate_period, 1 to 1000000000;
-- null means the queue's key_rate_limit, with its period and burst.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _violated text;
begin
    perform jobq_private.check_given('queue and concurrency_key', num_nulls(
        put_limit.queue, put_limit.concurrency_key
    ));
    perform jobq_private.check_worked('{}', put_limit.queue);
    insert into jobq_private.key_limit as l (
        queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
    )
    values (
        put_limit.queue, put_limit.concurrency_key, put_limit.max_running,
        put_limit.rate_limit, put_limit.rate_period, put_limit.rate_burst
    )
    on conflict on constraint key_limit_pkey do update
    set
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        updated_at = now();
    delete from jobq_private.key_limit as l
    where l.queue = put_limit.queue and l.concurrency_key = put_limit.concurrency_key
    and num_nonnulls(l.max_running, l.rate_limit, l.budget) = 0;
    perform jobq_private.record_audit(
        'put_limit', put_limit.queue || ' ' || put_limit.concurrency_key,
        coalesce(nullif(concat_ws(', ',
            'max_running ' || put_limit.max_running,
            'rate_limit ' || put_limit.rate_limit || ' in '
            || coalesce(put_limit.rate_period, '1 s')
        ), ''), 'none')
    );
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;
grant execute on function jobq.put_limit to jobq_operator;

comment on function jobq.put_limit is 'Sets how many jobs of one concurrency key may run at once in a queue, and how many may start per period. Replaces both. Without either, the queue''s limits for each key apply again.';

drop function if exists jobq_private.count_running;

commit;
