-- Deploy jobq:limit to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: the kinds for whose limits keys of a queue wait, how many jobs each allows to
-- start (null for any number), and when that changes by itself. Callers pin the
-- planner's settings.
create or replace function jobq_private.awaited_limits(queue text, now timestamptz)
returns table (kind text, max_starts integer, opens_at timestamptz)
language plpgsql
stable
as $$
declare
    _kind text := '';
    _scopes jobq_private.scope[];
begin
    loop
        _kind := (
            select min(w.full_kind)
            from jobq_private.waiting_key as w
            where w.queue = awaited_limits.queue and w.full_kind > _kind
        );
        exit when _kind is null;
        _scopes := _scopes || row(
            jobq_private.limit_id(null, _kind, null), null, _kind, null
        )::jobq_private.scope;
    end loop;
    if _scopes is not null then
        return query
        select r.kind, r.max_starts, r.opens_at
        from jobq_private.check_limits(_scopes, awaited_limits.now) as r;
    end if;
end
$$;

-- Purpose: the limits that prevent a job from starting now, with their reasons: held,
-- rate_limited, budget, ordered_behind, queue_busy, kind_busy or key_busy; no row if
-- the job may start.
-- Invariant: exact only for a caller that has locked the limits.
create or replace function jobq_private.blocking_limits(job jobq_private.job, now timestamptz)
returns table (reason text, explanation text)
language plpgsql
stable
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _cost constant numeric := coalesce(job.cost, 1);
    _scopes constant jobq_private.scope[] := array(select l from jobq_private.job_limits(job) as l);
begin
    return query
    select b.reason, b.explanation
    from jobq_private.check_limits(_scopes, blocking_limits.now) as r
    cross join lateral (
        select concat_ws(
            ', ', coalesce('kind ' || r.kind, 'queue ' || r.queue),
            'concurrency_key ' || r.concurrency_key
        ) as name
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
                else 'release_key() is called'
            end
        )),
        ('rate_limited', r.rate_opens_at is not null, format(
            '%s: the next starts at %s', n.name, date_trunc('second', r.rate_opens_at)
        )),
        ('budget', _cost > r.budget_left, format(
            '%s: %s of %s spent, this job costs %s; the next period begins at %s', n.name,
            r.spent, (r.budget).amount, _cost, date_trunc('second', r.period_end)
        )),
        ('ordered_behind', f.job_id is not null, format('%s: job %s goes first', n.name, f.job_id)),
        (
            case
                when r.concurrency_key is not null then 'key_busy'
                when r.kind is not null then 'kind_busy'
                else 'queue_busy'
            end,
            r.slots = 0,
            n.name || case
                when r.concurrency_key is null then ': as many run as its limit says'
                else format(': %s at once, and so many run: %s', r.max_running, (
                    select string_agg(format('job %s on %s', h.job_id, h.worker), ', ')
                    from (
                        select o.job_id, o.worker
                        from jobq_private.job as o
                        where r.slots = 0 and o.slot is not null
                        and case
                            when r.kind is null
                            then o.queue = r.queue and o.key_id = r.limit_id
                            else o.kind = r.kind and o.concurrency_key = r.concurrency_key
                        end
                        limit 3
                    ) as h
                ))
            end
        )
    ) as b (reason, is_so, explanation)
    where b.is_so;
end
$$;

-- Purpose: the begin and the end of the budget period that contains this moment: a
-- calendar day, a week from Monday, or a month, in the budget's time zone.
-- Invariant: one row. Inlined, so no SET clause.
create or replace function jobq_private.budget_period(
    budget jobq_private.budget, now timestamptz
)
returns table (start_at timestamptz, end_at timestamptz)
language sql
stable
rows 1
as $$
    select
        date_trunc(budget.period, now, budget.time_zone),
        (date_trunc(budget.period, now at time zone budget.time_zone)
            + ('1 ' || budget.period)::interval) at time zone budget.time_zone
$$;

-- Purpose: charge the costs of jobs that start to their limits, to that of the whole
-- queue only if is_limited, and record the last job that started in an ordered key. Raw
-- SQL may move a job as it starts: limits are then those that it has now. For a running
-- job, correction is the difference to what was charged before.
-- Invariant: the caller has locked the limits. Uses the clock after the starts. A refund
-- is at most the debt of the rate, and for a budget the charges of its current period
-- since charged_since. Limits that span keys or queues are also written, so that an older
-- repeatable snapshot fails. Callers pin the planner's settings.
create or replace function jobq_private.charge(
    job_ids uuid[], is_limited boolean, limits uuid[] default null,
    correction numeric default null, charged numeric default null
)
returns void
language plpgsql
as $$
begin
    update jobq_private.limit_state as g
    set
        rate_used = n.rate_used,
        spent = n.spent,
        charged_at = n.now,
        charged_since = case
            when n.rate_used is not null and g.rate_used is null
                or n.spent is not null and g.spent is null
            then statement_timestamp()
            else g.charged_since
        end,
        first_job_id = n.first_job_id
    from (
        select
            o.limit_id, c.now,
            case when u.is_ordered then a.last_id end as first_job_id,
            case when u.rate is not null then greatest(0, u.rate_used + case
                when a.cost >= 0 then a.cost
                when a.claimed_at >= u.charged_since then greatest(a.cost, least(
                    0, extract(epoch from c.now - a.claimed_at) * u.rate - charge.charged
                ))
                else 0
            end) end as rate_used,
            case when (u.budget).amount is not null then greatest(0, u.spent + case
                when a.cost >= 0 or a.claimed_at >= greatest(u.charged_since, u.period_start)
                then a.cost
                else 0
            end) end as spent
        from (
            select
                l.limit_id, sum(coalesce(charge.correction, j.cost, 1)) as cost,
                max(j.claimed_at) as claimed_at,
                (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last_id
            from jobq_private.job as j
            cross join lateral (
                select n.limit_id
                from unnest(charge.limits) as n (limit_id)
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
        join jobq_private.limit_state as o on o.limit_id = a.limit_id
        cross join (select clock_timestamp() as now offset 0) as c
        cross join lateral jobq_private.limit_usage(
            o.limit_id, o.queue, o.kind, o.concurrency_key, c.now
        ) as u
        where u.is_charged
    ) as n
    where g.limit_id = n.limit_id;
end
$$;

-- Purpose: for each of these limits, the nth: the number of free slots, the cost that
-- rate and budget still allow (null for any), how many jobs of cost 1 may start, when
-- that changes by itself, and the only job that may start in an ordered key.
-- Invariant: exact for a caller that has locked the limits, because it counts rows.
-- Cheaper jobs wait behind one that did not fit into a budget, as long as a claim finds
-- that job again every 10 s. Inlined if the arguments are variables, so no SET clause.
create or replace function jobq_private.check_limits(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, max_starts integer,
    slots integer, used_slots smallint[], rate_left integer, budget_left numeric,
    opens_at timestamptz, rate_opens_at timestamptz, first_job_id uuid, held_until timestamptz,
    hold_reason text, max_running integer, is_ordered boolean, budget jobq_private.budget,
    spent numeric, period_end timestamptz, is_charged boolean
)
language sql
stable
as $$
    with uncounted as materialized (
        select w.key_id, w.queue, w.kind, w.concurrency_key
        from jobq_private.running_without_slot() as w
    )
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case when h.held_until is null and not t.is_spent then least(c.slots, t.rate_left) else 0 end,
        c.slots, coalesce(c.used, '{}'), t.rate_left, t.budget_left,
        greatest(
            h.held_until, t.rate_opens_at,
            case when t.is_spent then least(u.period_end, u.next_until) end
        ),
        t.rate_opens_at, j.job_id, h.held_until, h.reason, u.max_running, u.is_ordered, u.budget,
        u.spent, u.period_end, u.is_charged
    from unnest(check_limits.scopes)
        with ordinality as s (limit_id, queue, kind, concurrency_key, n)
    cross join lateral jobq_private.limit_usage(
        s.limit_id, s.queue, s.kind, s.concurrency_key, check_limits.now
    ) as u
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
        where u.is_ordered and j.job_id = u.first_job_id and j.key_id = s.limit_id
        limit 1  -- or all jobs might be read, for a hash
    ) as j on true
    cross join lateral (
        select
            -- a millionth of a unit is rounding
            case
                when u.rate is not null then greatest(0, floor(u.burst - u.rate_used + 1e-6))::integer
            end as rate_left,
            case
                when floor(u.burst - u.rate_used + 1e-6) <= 0 then check_limits.now
                    + interval '1 us' * (1 + least(1e15, (1 - u.burst + u.rate_used) / u.rate * 1e6))
            end as rate_opens_at,
            (u.budget).amount - u.spent as budget_left,
            coalesce((u.budget).amount - u.spent < coalesce(u.next_cost, 0), false) as is_spent
    ) as t
    left join lateral (
        select o.slots as used, case
            when u.max_running is not null then greatest(0, u.max_running - o.jobs - (
                select count(*)
                from uncounted as r
                where case
                    when s.kind is null then r.queue = s.queue
                        and (s.concurrency_key is null or r.key_id = s.limit_id)
                    else r.kind = s.kind and coalesce(
                        r.concurrency_key = s.concurrency_key, s.concurrency_key is null
                    )
                end
            ))::integer
        end as slots
        from jobq_private.count_running(s.limit_id, s.queue, s.kind, s.concurrency_key) as o
        where u.max_running is not null
        or s.queue is not null and num_nonnulls(s.kind, s.concurrency_key) > 0
    ) as c on true
$$;

-- Purpose: lease runnable jobs of a queue's keys to a worker. Keys take turns. The given
-- priority is that of the first job without a key (null if there is none): jobs of
-- higher priorities come first, and keys get half of the slots at that priority. A key
-- whose first job has an excluded kind is skipped.
-- Invariant: reads a bounded number of keys; waits for no lock. The caller has locked
-- the queue's limit. The session remembers the last key, where the next claim goes on.
create or replace function jobq_private.claim_keys(
    queue text, worker text, max_jobs integer, priority integer, look jobq_private.queue_look,
    kinds text[], except_kinds text[]
)
returns jobq.claimed_job[]
language plpgsql
as $$
declare
    _name constant text := 'jobq.key_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _claimed jobq.claimed_job[] := '{}'::jobq.claimed_job[];
    _started jobq.claimed_job[];
    _left integer := max_jobs;
    _priority integer := 32768;
    _width integer;
    _keys jobq_private.waiting_key[];
    _jobs tid[];
    _slots smallint[];
    _is_charged boolean;
    _idle jobq_private.waiting_key[];
    _skipped integer;
    _closed bigint;
begin
    perform jobq_private.open_due_keys(queue, clock_timestamp(), _last);
    while _left > 0 loop
        _priority := (
            select max(w.priority)
            from jobq_private.waiting_key as w
            where w.queue = claim_keys.queue and w.state = 'open' and w.priority < _priority
        );
        exit when _priority is null or _priority < claim_keys.priority;
        if _priority = claim_keys.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _keys := array(
                select k.key
                from (values (_last, _top), (_bottom, _last)) as r (low, high)
                cross join lateral (
                    select distinct on (w.key_id) w as key
                    from jobq_private.waiting_key as w
                    where w.queue = claim_keys.queue and w.priority = _priority
                    and w.state = 'open' and w.key_id > r.low and w.key_id <= r.high
                    order by w.key_id
                    limit _width
                ) as k
                limit _width
            );
            exit when _keys = '{}';
            _last := (_keys[cardinality(_keys)]).key_id;
            select t.* into _jobs, _slots, _is_charged, _idle, _skipped
            from jobq_private.take_jobs(_keys, _left, look.has_limits, kinds, except_kinds) as t;
            _closed := 0;
            if look.has_kind_limits or look.is_limited or exists (
                select from unnest(_keys) as k where k.kind is not null
            ) then
                select p.* into _jobs, _slots, _closed
                from jobq_private.pass_limits(queue, _jobs, _slots, look) as p;
            end if;
            _started := array(
                select s
                from jobq_private.start_jobs(_jobs, claim_keys.worker, _slots) as s
                where s.lease_expires_at is not null  -- an expired job has died instead
                order by s.run_at, s.job_id
            );
            if _is_charged or look.has_kind_limits or look.is_limited then
                perform jobq_private.charge(
                    array(select s.job_id from unnest(_started) as s),
                    coalesce(look.is_limited, false)
                );
            end if;
            _claimed := _claimed || _started;
            _left := _left - cardinality(_jobs);
            _closed := _closed + jobq_private.close_keys(_idle);
            -- Look further if others have locked the keys, or jobs of other kinds are first.
            exit when _jobs = '{}' and _closed = 0
                and (cardinality(_keys) < _width or 2 * _skipped < cardinality(_keys));
            _width := least(100, case when _jobs = '{}' then _width * 2 else _left end);
        end loop;
    end loop;
    perform set_config(_name, _last::text, false);
    return _claimed;
end
$$;

-- Purpose: close keys in which a claim has found no runnable job: as full, until their
-- next job is due, or without a time; returns how many were closed. Duplicate rows are
-- merged.
-- Invariant: a key is closed only under its exclusive lock, after a second check. A
-- transaction that adds work or frees a slot holds that lock in shared mode, then
-- checks whether the key is closed. So one of the two always sees the other, and
-- neither waits: without the lock, the claim retries the key after 5 ms, and the other
-- transaction adds an open row.
create or replace function jobq_private.close_keys(keys jobq_private.waiting_key[])
returns bigint
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _scopes constant jobq_private.scope[] := array(
        select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
        from unnest(keys) as k
    );
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' or keys = '{}' then
        return 0;
    end if;
    _mine := array(
        select k.key_id from unnest(close_keys.keys) as k
        where pg_try_advisory_xact_lock(_closing, jobq_private.lock_slot(k.key_id))
    );
    with found as materialized (
        select k.key_id, k.queue, k.kind, k.concurrency_key, k.priority, t.open_at,
            case
                when k.key_id <> all(_mine) then 'busy'
                when w.run_at is null then 'empty'
                when t.open_at > _now then 'later'
                when r.slots = 0 or f.priority <> k.priority or f.queue <> k.queue then 'full'
                else 'busy'
            end as state
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
            case f.state when 'full' then 'full' else 'later' end,
            case f.state
                when 'busy' then clock_timestamp() + interval '5 ms'
                when 'full' then '-infinity'
                else f.open_at
            end
        from found as f
        where f.state <> 'empty' and f.key_id in (select g.key_id from gone as g)
    )
    select count(distinct g.key_id) into _closed from gone as g;
    return _closed;
end
$$;

-- Purpose: the number of running jobs with a slot under a limit, and their slots.
-- Invariant: counts rows with the snapshot of the statement, so no counter can leak.
-- For a key of a kind, includes jobs that started before the kind had limits for each
-- key. Inlined, so no SET clause; offset 0, so that it is evaluated once.
create or replace function jobq_private.count_running(
    limit_id uuid, queue text, kind text, concurrency_key text
)
returns table (jobs bigint, slots smallint[])
language sql
stable
rows 1
as $$
    select count(*), array_agg(r.slot)
    from (
        select j.slot
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is null
        and j.queue = count_running.queue and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is not null
        and j.queue = count_running.queue and j.key_id = count_running.limit_id
        and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where count_running.concurrency_key is null
        and j.kind = count_running.kind and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where j.kind = count_running.kind
        and j.concurrency_key = count_running.concurrency_key and j.slot is not null
    ) as r
    offset 0
$$;

-- Purpose: read what a claim needs about a queue before it searches for jobs, and lock
-- the limit of the whole queue, if any, until the commit.
-- Invariant: waits for no lock: while another transaction has the limit, max_starts is
-- 0. Callers pin the planner's settings.
create or replace function jobq_private.enter_queue(queue text, now timestamptz)
returns jobq_private.queue_look
language plpgsql
as $$
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
                select r.max_starts
                from jobq_private.check_limits(_scopes, enter_queue.now) as r
            );
        end if;
    end if;
    return _look;
end
$$;

-- Purpose: find waiting jobs whose keys have no open row (after a raw update or delete,
-- or a restore), open these keys, and return how many.
-- Invariant: derived from the rows of jobs only. Reads 1,000 keys per call, from where
-- the last call of any session ended. An unneeded open row is harmless: a claim closes
-- the key again.
create or replace function jobq_private.find_waiting_keys()
returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _job jobq_private.job := (
        select jsonb_populate_record(null::jobq_private.job, coalesce(
            t.resume_at,
            '{"queue": "", "key_id": "00000000-0000-0000-0000-000000000000", "priority": -32768}'
        ))
        from jobq_private.maintenance_task as t where t.task = 'opened_keys'
    );
    _jobs uuid[] := '{}'::uuid[];
    _keys uuid[] := '{}'::uuid[];
begin
    for _n in 1 .. 1000 loop
        select j.* into _job
        from jobq_private.job as j
        where j.key_id is not null and j.state in ('queued', 'retrying')
        and (j.queue, j.key_id, j.priority) > (_job.queue, _job.key_id, _job.priority)
        order by j.queue, j.key_id, j.priority, j.run_at, j.job_id
        limit 1;
        exit when _job.job_id is null;
        continue when exists (
            -- claims open these by themselves
            select from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.queue = _job.queue and w.priority = _job.priority
            and (w.full_kind is not null or w.state <> 'full' and w.open_at <= _now)
        );
        if not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.queue = _job.queue and w.priority = _job.priority
        )
            or _job.run_at <= _now
            and not exists (select from jobq_private.blocking_limits(_job, _now))
        then
            _jobs := _jobs || _job.job_id;
            _keys := _keys || _job.key_id;
        end if;
    end loop;
    perform jobq_private.open_keys(_jobs, _keys);
    update jobq_private.maintenance_task as t
    set resume_at = case when _job.job_id is not null then jsonb_build_object(
        'queue', _job.queue, 'key_id', _job.key_id, 'priority', _job.priority
    ) end
    where t.task = 'opened_keys';
    perform jobq_private.release_dead_keys(array(
        select h.dead_job_id
        from jobq_private.limit_hold as h
        where h.dead_job_id is not null
        order by random()
        limit 500
    ));
    perform jobq_private.number_running();
    return cardinality(_jobs);
end
$$;

-- Purpose: the limits that apply to the start of a job: those of its whole queue, its
-- whole kind, and its key; without a key, a hold of its kind in its queue.
create or replace function jobq_private.job_limits(job jobq_private.job)
returns setof jobq_private.scope
language sql
stable
rows 2
as $$
    select jobq_private.limit_id(q.queue, null, null), q.queue, null, null
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
    union all
    select jobq_private.limit_id(null, k.kind, null), null, k.kind, null
    from jobq_private.kind as k
    where k.kind = job.kind and num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
    union all
    (
        select h.limit_id, h.queue, h.kind, null
        from jobq_private.limit_hold as h
        where job.concurrency_key is null
        and h.limit_id = jobq_private.limit_id(job.queue, job.kind, null)
        limit 1
    )
    union all
    select
        job.key_id, job.queue,
        jobq_private.key_kind(job.key_id, job.queue, job.concurrency_key, job.kind),
        job.concurrency_key
    where job.concurrency_key is not null
$$;

-- Purpose: the kind to which the key of a job belongs; null if it belongs to the queue.
-- Derived from its key_id, not from the current declaration. Inlined, so no SET clause.
create or replace function jobq_private.key_kind(
    key_id uuid, queue text, concurrency_key text, kind text
)
returns text
language sql
immutable
as $$
    select case
        when key_id <> jobq_private.limit_id(queue, null, concurrency_key) then kind
    end
$$;

-- Purpose: the limit under which a job waits: that of its key (of the kind, if the kind
-- has limits for each key, else of the queue); without a key, that of its kind if it is
-- limited; else null.
create or replace function jobq_private.key_of(
    queue text, kind text, concurrency_key text, is_limited boolean
)
returns uuid
language plpgsql
stable
as $$
begin
    if concurrency_key is null then
        return case when is_limited then jobq_private.limit_id(null, kind, null) end;
    elsif exists (
        select from jobq_private.kind as k
        where k.kind = key_of.kind
        and pg_catalog.num_nonnulls(
            k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget
        ) > 0
    ) then
        return jobq_private.limit_id(null, kind, concurrency_key);
    end if;
    return jobq_private.limit_id(queue, null, concurrency_key);
end
$$;

-- Purpose: after attempts have ended: their slots are free, those with attempts left
-- wait again, and the key of a dead job may have to wait for an operator.
-- Invariant: a concurrent claim may be about to make keys wait for a kind. Queues in
-- which jobs of limited kinds have ended are therefore always woken.
create or replace function jobq_private.leave_keys(endings jobq_private.ending[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _woken text[];
begin
    -- apart, because most endings need nothing of this large plan
    if exists (
        select from unnest(endings) as e where e.state = 'dead' and e.concurrency_key is not null
    ) then
        perform jobq_private.store_hold(
            e.queue, null, e.concurrency_key, 'infinity', format('job %s is dead', e.job_id),
            e.job_id
        )
        from unnest(endings) as e
        cross join lateral jobq_private.limit_usage(
            e.key_id, e.queue,
            jobq_private.key_kind(e.key_id, e.queue, e.concurrency_key, e.kind),
            e.concurrency_key, now()
        ) as u
        where e.state = 'dead' and e.concurrency_key is not null and u.is_ordered
        and u.holds_on_dead;
    end if;
    perform jobq_private.open_keys(
        array(select e.job_id from unnest(endings) as e where e.state in ('retrying', 'queued')),
        array(
            select e.key_id from unnest(endings) as e
            union
            -- a job that started before its kind had limits for each key frees the kind's too
            select jobq_private.limit_id(null, e.kind, e.concurrency_key)
            from unnest(endings) as e
            join jobq_private.kind as k
                on k.kind = e.kind
                and num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget) > 0
            where e.concurrency_key is not null
        )
    );
    _woken := array(
        select w.queue
        from (select distinct e.queue, e.kind from unnest(endings) as e) as e
        join jobq_private.kind as k
            on k.kind = e.kind and num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
        cross join lateral (
            select e.queue
            union all
            select w.queue from jobq_private.waiting_key as w where w.full_kind = e.kind
        ) as w
        union
        select q.queue from jobq_private.queue as q
        where q.queue in (select e.queue from unnest(endings) as e) and q.max_running is not null
    );
    if _woken <> '{}' then
        perform jobq_private.wake(_woken);
    end if;
end
$$;

-- Purpose: the id of a limit: of a queue, a kind, a key of a queue, or a key of a kind
-- in all queues; with both a queue and a kind, of a hold of the kind in the queue.
-- Invariant: a hash for which no caller can construct collisions. Not inlined, because
-- a statement would initialize each inner function for every job.
create or replace function jobq_private.limit_id(queue text, kind text, concurrency_key text)
returns uuid
language plpgsql
immutable
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.concat(
                pg_catalog.length(queue), ':', queue, pg_catalog.length(kind), ':', kind,
                concurrency_key
            ), 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;

-- Purpose: the limits of a scope and their usage: of a rate (in units of cost per
-- second), the level of its leaky bucket; of a budget, the charges of its current
-- period; and whether starts must be charged.
-- Invariant: one row. A limit of a single key replaces the queue's limit for each key.
-- Inlined, so no SET clause; offset 0, so that it is evaluated once.
create or replace function jobq_private.limit_usage(
    limit_id uuid, queue text, kind text, concurrency_key text, now timestamptz
)
returns table (
    max_running integer, is_ordered boolean, holds_on_dead boolean, rate double precision,
    burst integer, rate_used double precision, budget jobq_private.budget,
    period_start timestamptz, period_end timestamptz, spent numeric, next_cost numeric,
    next_until timestamptz, charged_since timestamptz, first_job_id uuid, is_charged boolean
)
language sql
stable
rows 1
as $$
    select
        case when r.ordered then 1 else r.max_running end,
        coalesce(r.ordered, false),
        coalesce(r.on_dead = 'hold', false),
        u.rate,
        coalesce(r.rate_burst, 1),
        case
            when u.rate is null then null
            -- a later charge comes from a clock that was set back
            when g.charged_at <= limit_usage.now + interval '10 s' then greatest(
                0, coalesce(g.rate_used, 0)
                - u.rate * greatest(0, extract(epoch from limit_usage.now - g.charged_at))
            )
            else 0
        end,
        r.budget, p.start_at, p.end_at,
        case when g.charged_at >= p.start_at then coalesce(g.spent, 0) else 0 end,
        case when g.next_until > limit_usage.now then g.next_cost end,
        case when g.next_until > limit_usage.now then g.next_until end,
        g.charged_since, g.first_job_id,
        num_nonnulls(u.rate, r.budget, limit_usage.kind) > 0 or coalesce(r.ordered, false)
        or limit_usage.concurrency_key is null
    from (values (1)) as v
    left join (
        select
            coalesce(l.max_running, q.key_max_running) as max_running,
            coalesce(l.rate_limit, q.key_rate_limit) as rate_limit,
            case when l.rate_limit is null then q.key_rate_period else l.rate_period end
                as rate_period,
            case when l.rate_limit is null then q.key_rate_burst else l.rate_burst end
                as rate_burst,
            q.ordered, q.on_dead,
            case when l.budget is null then q.key_budget else l.budget end as budget
        from (values (1)) as one
        left join jobq_private.queue as q on q.queue = limit_usage.queue
        left join jobq_private.key_limit as l
            on l.queue = limit_usage.queue and l.concurrency_key = limit_usage.concurrency_key
        where limit_usage.kind is null and limit_usage.concurrency_key is not null
        union all
        select
            q.max_running, q.rate_limit, q.rate_period, q.rate_burst, false, null, q.budget
        from jobq_private.queue as q
        where q.queue = limit_usage.queue
        and limit_usage.kind is null and limit_usage.concurrency_key is null
        union all
        select
            k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst, k.ordered,
            k.on_dead, k.key_budget
        from jobq_private.kind as k
        where k.kind = limit_usage.kind and limit_usage.concurrency_key is not null
        union all
        select k.max_running, k.rate_limit, k.rate_period, k.rate_burst, false, null, k.budget
        from jobq_private.kind as k
        where k.kind = limit_usage.kind
        and limit_usage.queue is null and limit_usage.concurrency_key is null
    ) as r on true
    left join jobq_private.limit_state as g on g.limit_id = limit_usage.limit_id
    cross join lateral (
        select r.rate_limit
            / extract(epoch from coalesce(r.rate_period, '1 s'))::double precision as rate
    ) as u
    left join lateral jobq_private.budget_period(r.budget, limit_usage.now) as p on true
    offset 0
$$;

-- Purpose: lock limits, and return the locked ones: all of them after waiting, or
-- without waiting those that no other transaction has locked. Each is given once.
-- Invariant: the only lock under which jobs start. A limit without a row gets one under
-- an advisory lock, so that no claim waits for another's insert. A repeatable snapshot
-- that has not seen the last charge fails here with 40001. Callers pin the planner's
-- settings.
create or replace function jobq_private.lock_limits(scopes jobq_private.scope[], may_wait boolean)
returns uuid[]
language plpgsql
as $$
declare
    _making constant integer := jobq_private.lock_class('making');
    _ids constant uuid[] := array(select s.limit_id from unnest(scopes) as s);
    _locked uuid[];
begin
    if not may_wait then
        _locked := array(
            select g.limit_id
            from jobq_private.limit_state as g
            where g.limit_id = any(_ids)
            for update skip locked
        );
    end if;
    while cardinality(_locked) is distinct from cardinality(_ids) loop
        with made as (
            insert into jobq_private.limit_state (limit_id, queue, kind, concurrency_key)
            select m.limit_id, case when m.kind is null then m.queue end, m.kind, m.concurrency_key
            from (
                select s.*
                from unnest(lock_limits.scopes) as s
                where not exists (
                    select from jobq_private.limit_state as g where g.limit_id = s.limit_id
                )
                order by jobq_private.lock_slot(s.limit_id)
                offset 0
            ) as m
            where case
                when may_wait then pg_advisory_xact_lock(
                    _making, jobq_private.lock_slot(m.limit_id)
                )::text is not null
                else pg_try_advisory_xact_lock(_making, jobq_private.lock_slot(m.limit_id))
            end
            on conflict on constraint limit_state_pkey do nothing
            returning limit_id
        )
        -- nobody else sees these yet
        select _locked || array(select m.limit_id from made as m) into _locked;
        exit when not may_wait;
        -- once more if prune_limits() deletes one in between
        _locked := array(
            select g.limit_id
            from jobq_private.limit_state as g
            where g.limit_id = any(_ids)
            order by g.limit_id
            for update
        );
    end loop;
    return _locked;
end
$$;

-- Purpose: the number of the advisory lock (of 256) that guards the closing of a key,
-- or the insertion of a limit's row. Inlined, so no SET clause.
create or replace function jobq_private.lock_slot(limit_id uuid)
returns integer
language sql
immutable
as $$
    select pg_catalog.uuid_hash(limit_id) & 255
$$;

-- Purpose: return those of a claim's locked jobs that wait under the right key, and
-- move the others, which were stored before their kind got or lost limits, to theirs.
create or replace function jobq_private.move_jobs(inout jobs tid[], inout slots smallint[])
language plpgsql
as $$
declare
    _moved uuid[];
    _rows tid[];
begin
    with moved as (
        update jobq_private.job as j
        set key_id = k.key_id
        from (
            select o.ctid as row, jobq_private.key_of(
                o.queue, o.kind, o.concurrency_key, exists (
                    select from jobq_private.job_limits(o) as l where l.kind is not null
                )
            ) as key_id
            from jobq_private.job as o
            where o.ctid = any(move_jobs.jobs)
            offset 0
        ) as k
        where j.ctid = k.row and k.key_id is not null and k.key_id is distinct from j.key_id
        returning j.job_id, k.row
    )
    select array_agg(m.job_id), array_agg(m.row) into _moved, _rows from moved as m;
    if _moved is not null then
        perform jobq_private.open_keys(_moved);
        select coalesce(array_agg(u.job order by u.n), '{}'), array_agg(u.slot order by u.n)
        into move_jobs.jobs, move_jobs.slots
        from unnest(move_jobs.jobs, move_jobs.slots) with ordinality as u (job, slot, n)
        where u.job <> all(_rows);
    end if;
end
$$;

-- Purpose: when the next key of a queue may have a runnable job; -infinity if one may
-- have one now, also if a claim skipped it because its limits were locked.
-- Invariant: two index probes, one more for each limit that keys wait for, and with
-- excluded kinds one for each key whose first job has such a kind.
create or replace function jobq_private.next_key(queue text, except_kinds text[])
returns timestamptz
language sql
stable
as $$
    select least(
        (
            select case when w.open_at > clock_timestamp() then w.open_at else '-infinity' end
            from jobq_private.waiting_key as w
            where w.queue = next_key.queue and w.state <> 'full'
            and (
                next_key.except_kinds is null
                or coalesce((
                    select j.kind
                    from jobq_private.job as j
                    where j.queue = w.queue
                    and j.key_id = w.key_id
                    and j.priority = w.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) <> all(next_key.except_kinds), false)
            )
            order by w.open_at
            limit 1
        ),
        (
            select min(case when coalesce(a.max_starts, 1) > 0 then '-infinity' else a.opens_at end)
            from jobq_private.awaited_limits(next_key.queue, clock_timestamp()) as a
        )
    )
$$;

-- Purpose: give slots to running jobs without one, if limits may count them; then
-- delete the record that limits have changed.
-- Invariant: takes the highest slots of a key; claims take the lowest, so the two do
-- not conflict. Skips locked rows. maintain() runs in one session at a time.
create or replace function jobq_private.number_running()
returns void
language plpgsql
as $$
begin
    with found as materialized (
        select j.job_id, j.queue, j.key_id
        from jobq_private.job as j
        where j.job_id = any(array(select u.job_id from jobq_private.running_without_slot() as u))
        for no key update skip locked
    )
    update jobq_private.job as j
    set slot = n.slot
    from (
        select f.job_id, case when f.key_id is null then 1 else coalesce((
            select min(o.slot) from jobq_private.job as o
            where o.queue = f.queue and o.key_id = f.key_id and o.slot > 16384
        ), 32768) - row_number() over (partition by f.queue, f.key_id) end as slot
        from found as f
    ) as n
    where j.job_id = n.job_id and j.state = 'running' and j.slot is null;
    delete from jobq_private.limit_change as c
    where c.change_id > 1
    and c.changed_at < clock_timestamp() - interval '10 s'
    -- no transaction is open that has not seen the change
    and age(c.xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
    and not exists (select from jobq_private.running_without_slot());
end
$$;

-- Purpose: open the keys of these rows, and wake their queues.
-- Invariant: adds rows, so it waits for no claim, and a concurrent claim that closes
-- one of the keys does not undo it.
create or replace function jobq_private.open_again(rows jobq_private.waiting_key[])
returns void
language plpgsql
as $$
begin
    if rows <> '{}' then
        insert into jobq_private.waiting_key (key_id, queue, kind, concurrency_key, priority)
        select distinct r.key_id, r.queue, r.kind, r.concurrency_key, r.priority
        from unnest(open_again.rows) as r;
        perform jobq_private.wake(array(select distinct r.queue from unnest(rows) as r));
    end if;
end
$$;

-- Purpose: open the keys of a queue that are due. Of those that wait for the limit of a
-- kind, open as many of the highest priority as the limit allows to start, from the last
-- key on that the session has claimed from.
-- Invariant: bounded; skips locked rows. Callers pin the planner's settings.
create or replace function jobq_private.open_due_keys(queue text, now timestamptz, last_key uuid)
returns void
language plpgsql
as $$
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
    );
    _rows := _rows || array(
        select w.ctid
        from jobq_private.awaited_limits(open_due_keys.queue, open_due_keys.now) as a
        cross join lateral (
            select max(p.priority) as priority
            from jobq_private.waiting_key as p
            where p.queue = open_due_keys.queue and p.full_kind = a.kind
        ) as p
        cross join lateral (
            select o.key_id
            from (values (last_key, _top), (_bottom, last_key)) as t (low, high)
            cross join lateral (
                select o.key_id
                from jobq_private.waiting_key as o
                where o.queue = open_due_keys.queue and o.full_kind = a.kind
                and o.priority = p.priority and o.key_id > t.low and o.key_id <= t.high
                order by o.key_id
                limit least(greatest(a.max_starts, 1), 100)
            ) as o
            limit least(greatest(a.max_starts, 1), 100)
        ) as o
        cross join lateral (
            select w.ctid
            from jobq_private.waiting_key as w
            where w.key_id = o.key_id and w.queue = open_due_keys.queue
            and w.full_kind = a.kind and w.priority = p.priority
            for update skip locked
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

-- Purpose: open the keys of jobs that now wait, and freed keys, which have a free slot
-- or a new first job, and wake their queues. A key needs no new row if it has an open
-- one; for a new job also a full one, or one that opens when the job is due.
-- Invariant: the protocol of close_keys(). A repeatable snapshot is too old to check.
create or replace function jobq_private.open_keys(job_ids uuid[], freed uuid[] default '{}')
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _locked uuid[] := '{}'::uuid[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _locked := array(
            select k.key_id
            from (
                select j.key_id from jobq_private.job as j where j.job_id = any(open_keys.job_ids)
                union
                select unnest(open_keys.freed)
                offset 0
            ) as k
            where k.key_id is not null
            and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lock_slot(k.key_id))
        );
    end if;
    perform jobq_private.open_again(array(
        select row(
            null, n.key_id, n.queue, n.kind, n.concurrency_key, n.priority, null, null, null
        )::jobq_private.waiting_key
        from (
            select
                j.key_id, j.queue,
                jobq_private.key_kind(j.key_id, j.queue, j.concurrency_key, min(j.kind)) as kind,
                j.concurrency_key, j.priority, min(j.run_at) as run_at
            from jobq_private.job as j
            where j.job_id = any(open_keys.job_ids) and j.key_id is not null
            group by j.key_id, j.queue, j.concurrency_key, j.priority
            union all
            select w.key_id, w.queue, w.kind, w.concurrency_key, w.priority, null
            from jobq_private.waiting_key as w
            where w.key_id = any(open_keys.freed)
            and (
                w.state = 'full'
                or w.key_id <> all(_locked)
                or w.state = 'later' and exists (
                    select from jobq_private.limit_state as g
                    where g.limit_id = w.key_id and g.first_job_id is not null
                )
            )
            offset 0
        ) as n
        where n.key_id <> all(_locked)
        or not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = n.key_id and w.queue = n.queue and w.priority = n.priority
            and (w.state = 'open' or w.open_at <= n.run_at)
        )
    ));
end
$$;

-- Purpose: return those of a claim's locked jobs that the limits of their kinds and of
-- the queue allow to start. The keys of the others wait for the limit of their kind
-- (closed counts them); jobs in a wrong key are moved.
-- Invariant: running jobs of a kind are counted after its limit was locked; the caller
-- has locked the queue's. No job overtakes another of its key. A job that does not fit
-- into a budget makes others wait.
create or replace function jobq_private.pass_limits(
    queue text, inout jobs tid[], inout slots smallint[], look jobq_private.queue_look,
    out closed bigint
)
language plpgsql
as $$
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
        select distinct l
        from jobq_private.job as j
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
        where s.kind is not null and s.is_locked and w.ctid = any(array(
            select o.ctid from jobq_private.waiting_key as o
            where o.key_id = s.key_id and o.queue = pass_limits.queue and o.priority = s.priority
            for update skip locked
        ))
        returning w.key_id
    )
    select coalesce(array_agg(p.job order by p.n), '{}'), array_agg(p.slot order by p.n),
        pass_limits.closed + (select count(distinct s.key_id) from shut as s)
    into pass_limits.jobs, pass_limits.slots, pass_limits.closed
    from (select distinct p.job, p.slot, p.n from passed as p where p.may_pass) as p;
end
$$;

-- Purpose: delete limits without usage, and expired holds. Returns the number of rows.
-- Invariant: reads a sample of limits. Keeps those with waiting jobs, so that no claim
-- finds them locked, and those charged within a minute, so that a repeatable snapshot
-- that has not seen that start fails at them.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint
language plpgsql
as $$
declare
    _percent constant double precision := (
        select least(100, 1000.0 * max_rows / greatest(1, c.reltuples))
        from pg_class as c
        where c.oid = 'jobq_private.limit_state'::regclass
    );
    _pruned bigint;
begin
    with forgotten as (
        delete from jobq_private.limit_state as g
        where g.ctid = any(array(
            select o.ctid
            from jobq_private.limit_state as o tablesample system (_percent)
            cross join lateral jobq_private.limit_usage(
                o.limit_id, o.queue, o.kind, o.concurrency_key, now()
            ) as u
            where coalesce(u.rate_used, 0) = 0
            and ((u.budget).amount is null or u.spent = 0)
            and coalesce(o.charged_at < now() - interval '1 min', true)
            and not exists (select from jobq_private.job as j where j.job_id = o.first_job_id)
            and not exists (
                select from jobq_private.waiting_key as w
                where w.key_id = o.limit_id or w.full_kind = o.kind
            )
            limit prune_limits.max_rows
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
    select count(*) into _pruned
    from (table forgotten union all table ended) as p;
    return _pruned;
end
$$;

-- Purpose: release the keys that are held for one of these dead jobs, if the job has
-- been deleted, pruned or redriven, by any writer.
create or replace function jobq_private.release_dead_keys(job_ids uuid[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _rows jobq_private.waiting_key[];
begin
    with released as (
        delete from jobq_private.limit_hold as h
        where h.dead_job_id = any(release_dead_keys.job_ids)
        and not exists (
            select from jobq_private.job_archive as a
            where a.job_id = h.dead_job_id and a.state = 'dead'
        )
        returning h.queue, h.concurrency_key
    )
    select array_agg(w) into _rows
    from released as r
    join jobq_private.waiting_key as w
        on w.queue = r.queue and w.concurrency_key = r.concurrency_key;
    perform jobq_private.open_again(_rows);
end
$$;

-- Purpose: the running jobs without a slot that limits may have to count.
-- Invariant: a change of limits waits for no transaction, so jobs that started before
-- it, or in a transaction that was open then, are counted one by one until
-- number_running() gives them slots. Reads one row while limit_change has only its
-- first.
create or replace function jobq_private.running_without_slot()
returns setof jobq_private.job
language sql
stable
as $$
    select j.*
    from jobq_private.job as j
    where exists (select from jobq_private.limit_change as c where c.change_id > 1)
    and j.state = 'running'
    and j.slot is null
    and (
        j.concurrency_key is not null
        or exists (
            select from jobq_private.queue as q
            where q.queue = j.queue and q.max_running is not null
        )
        or exists (
            select from jobq_private.kind as k where k.kind = j.kind and k.max_running is not null
        )
    )
$$;

-- Purpose: hold a key, or without a key a kind, in a queue until a time, or while a
-- dead job exists. The longest hold applies.
-- Invariant: waits for no lock.
create or replace function jobq_private.store_hold(
    queue text, kind text, concurrency_key text, until timestamptz, reason text,
    dead_job_id uuid default null
)
returns void
language sql
as $$
    insert into jobq_private.limit_hold (
        limit_id, queue, kind, concurrency_key, held_until, reason, dead_job_id
    )
    values (
        jobq_private.limit_id(queue, kind, concurrency_key),
        store_hold.queue, store_hold.kind, store_hold.concurrency_key,
        store_hold.until, left(store_hold.reason, 512), store_hold.dead_job_id
    )
$$;

-- Purpose: of each of these keys, its next due jobs and the slots that they get; with
-- the keys that are idle: there was none, or none may start.
-- Invariant: locks the keys' limits, if any apply, then counts free slots. One job of
-- each key while there are keys for all that is wanted (what is locked beyond that is
-- left); else equal shares. is_charged says whether the limits of these keys record the
-- starts; skipped counts keys that others have locked, and jobs of unwanted kinds.
create or replace function jobq_private.take_jobs(
    keys jobq_private.waiting_key[], wanted integer, has_limits boolean, kinds text[],
    except_kinds text[], out jobs tid[], out slots smallint[],
    out is_charged boolean, out idle jobq_private.waiting_key[], out skipped integer
)
language plpgsql
as $$
declare
    _now timestamptz;
    _share integer;
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
    with allowed as materialized (
        select
            r.n, r.max_starts, r.rate_left, r.budget_left, r.first_job_id, r.is_charged,
            array(
                -- the lowest that are free
                select s::smallint
                from generate_series(1, cardinality(r.used_slots) + least(_share, r.max_starts)) as s
                where s <= 32767 and s <> all(r.used_slots)
            ) as slots
        from jobq_private.check_limits(_scopes, _now) as r
    ),
    seen as materialized (
        select
            k.ordinality as n, j.job, row_number() over key as k,
            r.slots[row_number() over key] as slot,
            coalesce(take_jobs.kinds is null or j.kind = any(take_jobs.kinds), false)
            and coalesce(j.kind <> all(take_jobs.except_kinds), true) as is_wanted,
            -- a rate lets a job start while a unit is left, a budget while the whole cost is
            coalesce(sum(j.cost) over key - j.cost < r.rate_left, true)
            and coalesce(sum(j.cost) over key <= r.budget_left, true) as fits
        from unnest(take_jobs.keys) with ordinality as k
        left join allowed as r on r.n = k.ordinality
        cross join lateral (
            select j.ctid as job, j.kind, coalesce(j.cost, 1) as cost, j.run_at, j.job_id
            from jobq_private.job as j
            where j.queue = k.queue
            and j.key_id = k.key_id
            and j.priority = k.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= _now
            and (r.first_job_id is null or j.job_id = r.first_job_id)
            order by j.run_at, j.job_id
            limit least(_share, r.max_starts)
            for update skip locked
        ) as j
        window key as (partition by k.ordinality order by j.run_at, j.job_id)
    ),
    taken as materialized (
        select s.* from seen as s where s.fits order by s.k, s.n limit wanted
    )
    select
        coalesce(array_agg(t.job order by t.k, t.n) filter (where t.is_wanted), '{}'),
        array_agg(t.slot order by t.k, t.n) filter (where t.is_wanted),
        (select bool_or(a.is_charged) from allowed as a),
        array(
            select take_jobs.keys[n] from generate_subscripts(take_jobs.keys, 1) as n
            where n not in (select s.n from seen as s where s.fits)
        ),
        _picked - cardinality(take_jobs.keys) + count(*) filter (where not t.is_wanted)
    into take_jobs.jobs, take_jobs.slots, take_jobs.is_charged, take_jobs.idle, take_jobs.skipped
    from taken as t;
end
$$;

-- Purpose: take a slot for a job that is started by its id or by raw SQL, and charge
-- its cost; null if no limit applies.
-- Invariant: waits for the locks of all its limits, then checks them. Raises: JQ011.
create or replace function jobq_private.take_slot(
    job jobq_private.job, out slot smallint, out started_at timestamptz
)
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _scopes constant jobq_private.scope[] := array(select l from jobq_private.job_limits(job) as l);
    _reached text;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from jobq_private.limit_change as c where c.change_id = 1 for share skip locked;
    end if;
    if _scopes = '{}' then
        return;
    end if;
    perform jobq_private.lock_limits(_scopes, true);
    _reached := (
        select b.explanation from jobq_private.blocking_limits(job, clock_timestamp()) as b limit 1
    );
    if _reached is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _reached);
    end if;
    -- the first that no job of its key has; 1 without a key
    slot := (
        select s.n
        from (select generate_series(1, 32767) as n) as s
        where s.n <> all(array(
            select j.slot from jobq_private.job as j
            where j.queue = job.queue and j.key_id = job.key_id and j.slot is not null
        ))
        limit 1
    );
    -- read between: no end of what made room is later, and what is charged counts from no earlier
    started_at := clock_timestamp();
    perform jobq_private.charge(
        array[job.job_id], true, array(select s.limit_id from unnest(_scopes) as s)
    );
end
$$;

-- Purpose: Starts no job of one concurrency key of a queue until a time.
-- Invariant: running jobs continue; a longer hold stays. Raises: 22004, 22023.
-- Argument until: the time, or infinity until release_key() is called.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_key('mail', 'customer-7', now() + interval '1 min', 'asked to wait');
create or replace function jobq.hold_key(
    queue text, concurrency_key text, until timestamptz, reason text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('queue, concurrency_key and until', num_nulls(
        hold_key.queue, hold_key.concurrency_key, hold_key.until
    ));
    perform jobq_private.check_argument(case
        when length(hold_key.queue) not between 1 and 128 or right(hold_key.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        when octet_length(hold_key.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when hold_key.until not between '0001-01-02 UTC' and '9999-12-30 UTC'
            and hold_key.until <> 'infinity'
        then 'until must be before the year 10000, or infinity'
    end);
    perform jobq_private.store_hold(
        hold_key.queue, null, hold_key.concurrency_key, hold_key.until, hold_key.reason
    );
    perform jobq_private.record_audit(
        'hold_key', hold_key.queue || ' ' || hold_key.concurrency_key, hold_key.reason
    );
end
$$;

grant execute on function jobq.hold_key to jobq_operator;

comment on function jobq.hold_key is 'Starts no job of one concurrency key of a queue until a time.';

-- Purpose: Lists the budgets, with the amounts spent and reserved in the current
-- period; a budget of each key has one more row per key with spending.
-- Invariant: reads only. Raises: nothing.
-- Argument scope_type: only of this type, queue or kind; null means both.
-- Argument scope: only of this queue or kind; null means all.
-- Argument max_keys: maximum number of keys of each budget for each key; those that
-- have spent most come first.
-- Column concurrency_key: null if the budget is that of the whole scope or, with
-- each_key, of each key.
-- Column spent: the charges of this period, including the amounts reserved by running
-- jobs.
-- Column reserved: the part of it that is reserved by running jobs which have not
-- reported their cost.
-- Column next_period_at: when the next period begins.
-- Example: select * from jobq_internal.list_budgets();
create or replace function jobq_internal.list_budgets(
    scope_type text default null, scope text default null, max_keys integer default 100
)
returns table (
    scope_type text,
    scope text,
    concurrency_key text,
    each_key boolean,
    amount numeric,
    period text,
    time_zone text,
    spent numeric,
    reserved numeric,
    next_period_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with budget as (
        select b.*, p.*
        from (
            select 'queue' as scope_type, q.queue as scope, q.queue, null::text as kind,
                null::text as concurrency_key, v.each_key, v.budget
            from jobq_private.queue as q
            cross join lateral (values (false, q.budget), (true, q.key_budget))
                as v (each_key, budget)
            union all
            select 'queue', l.queue, l.queue, null, l.concurrency_key, false, l.budget
            from jobq_private.key_limit as l
            union all
            select 'kind', k.kind, null, k.kind, null, v.each_key, v.budget
            from jobq_private.kind as k
            cross join lateral (values (false, k.budget), (true, k.key_budget))
                as v (each_key, budget)
        ) as b
        cross join lateral jobq_private.budget_period(b.budget, clock_timestamp()) as p
        where b.budget is not null
        and (list_budgets.scope_type is null or b.scope_type = list_budgets.scope_type)
        and (list_budgets.scope is null or b.scope = list_budgets.scope)
    )
    select
        b.scope_type, b.scope, u.concurrency_key, b.each_key, (b.budget).amount,
        (b.budget).period, (b.budget).time_zone, u.spent,
        case when u.spent is not null then coalesce(r.reserved, 0) end, b.end_at
    from budget as b
    cross join lateral (
        select b.concurrency_key, case when not b.each_key then coalesce((
            select g.spent
            from jobq_private.limit_state as g
            where g.limit_id = jobq_private.limit_id(b.queue, b.kind, b.concurrency_key)
            and g.charged_at >= b.start_at
        ), 0) end as spent
        union all
        (
            select g.concurrency_key, g.spent
            from jobq_private.limit_state as g
            where b.each_key
            and g.queue is not distinct from b.queue and g.kind is not distinct from b.kind
            and g.concurrency_key is not null
            and g.spent > 0 and g.charged_at >= b.start_at
            and not exists (
                select from jobq_private.key_limit as l
                where l.queue = b.queue
                and l.concurrency_key = g.concurrency_key and l.budget is not null
            )
            order by g.spent desc
            limit greatest(0, list_budgets.max_keys)
        )
    ) as u
    left join lateral (
        select sum(coalesce(j.cost, 1)) as reserved
        from jobq_private.job as j
        where j.state = 'running'
        and coalesce(j.queue = b.queue, j.kind = b.kind)
        and coalesce(j.concurrency_key = u.concurrency_key, u.concurrency_key is null)
        and (
            b.kind is not null or u.concurrency_key is null
            or j.key_id = jobq_private.limit_id(j.queue, null, j.concurrency_key)
        )
        and j.claimed_at >= b.start_at
        and j.reported_cost is null
    ) as r on true
    order by 1, 2, 4, 3 nulls first
$$;

grant execute on function jobq_internal.list_budgets to jobq_operator, jobq_reader;

comment on function jobq_internal.list_budgets is 'Lists the budgets, with the amounts spent and reserved in the current period; a budget of each key has one more row per key with spending.';

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
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    running bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        l.queue, l.concurrency_key, l.max_running, l.rate_limit, l.rate_period,
        l.rate_burst, r.jobs, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral jobq_private.count_running(
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
-- start. Counts jobs that start after its creation. Raises: 22004, 22023, JQ007, JQ009.
-- Argument scope_type: queue or kind.
-- Argument scope: the name of the queue or kind; a kind must be declared.
-- Argument amount: what may be spent in a period, at least 0; null for no budget.
-- Argument period: day, week (from Monday) or month.
-- Argument time_zone: in which the period begins at midnight, such as Europe/Berlin.
-- Argument concurrency_key: the budget is that of one key of the queue, instead of the
-- budget of each key.
-- Argument each_key: whether the budget is that of each concurrency key.
-- Returns: nothing.
-- Example: select jobq.put_budget('queue', 'llm', 1000000, 'day', 'Europe/Berlin');
create or replace function jobq.put_budget(
    scope_type text, scope text, amount numeric default null, period text default 'month',
    time_zone text default 'UTC', concurrency_key text default null, each_key boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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

-- Purpose: Sets how many jobs of one concurrency key may run at once in a queue, and
-- how many may start per period, instead of the queue's limits for each key. Without
-- either, those of the queue apply again.
-- Invariant: one row, the last writer wins; applies to the next start, and running jobs
-- continue.
-- Raises: 22004, 22023.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: maximum number of its jobs that run at once in the queue, 1 to
-- 32767; null means the queue's value.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    perform jobq_private.check_given('queue and concurrency_key', num_nulls(
        put_limit.queue, put_limit.concurrency_key
    ));
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

comment on function jobq.put_limit is 'Sets how many jobs of one concurrency key may run at once in a queue, and how many may start per period, instead of the queue''s limits for each key. Without either, those of the queue apply again.';

-- Purpose: Starts no jobs of a running job's concurrency key, or without a key of its
-- kind in its queue, for a duration; and returns the job to its queue.
-- Invariant: other running jobs continue. The attempt does not count. With a key, the
-- job runs first in it after the hold. A stale attempt changes nothing. Raises: 22004,
-- 22023, JQ001, JQ003.
-- Argument retry_in: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Argument release: false if the job continues; it must be settled later.
-- Returns: the state: queued, cancelled if that was requested, or running if the job continues.
-- Example: select jobq.rate_limited(:'running', 1, '30 s', 'status 429');
create or replace function jobq.rate_limited(
    job_id uuid, attempt integer, retry_in interval, reason text default null,
    release boolean default true
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job record;
begin
    perform jobq_private.check_given('job_id, attempt, retry_in and release', num_nulls(
        rate_limited.job_id, rate_limited.attempt, rate_limited.retry_in, rate_limited.release
    ));
    perform jobq_private.check_argument(case
        when rate_limited.retry_in not between '0' and '365 days'
        then 'retry_in must be from 0 to 365 days'
    end);
    select j.queue, j.kind, j.concurrency_key into _job
    from jobq_private.job as j
    where j.job_id = rate_limited.job_id
    and j.attempt = rate_limited.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(rate_limited.job_id, rate_limited.attempt);
    end if;
    perform jobq_private.store_hold(
        _job.queue, case when _job.concurrency_key is null then _job.kind end,
        _job.concurrency_key, clock_timestamp() + rate_limited.retry_in, rate_limited.reason
    );
    if not rate_limited.release then
        return 'running';
    end if;
    return jobq.release(rate_limited.job_id, rate_limited.attempt);
end
$$;

grant execute on function jobq.rate_limited to jobq_worker;

comment on function jobq.rate_limited is 'Starts no jobs of a running job''s concurrency key, or without a key of its kind in its queue, for a duration; and returns the job to its queue.';

-- Purpose: Lets the jobs of a held concurrency key, or of a held kind, start again, and
-- returns whether it was held.
-- Invariant: at once; limits continue to apply. Raises: 22004, 22023.
-- Argument kind: in place of a key.
-- Returns: whether it was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(
    queue text, concurrency_key text default null, kind text default null
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _was_held boolean;
begin
    perform jobq_private.check_given('queue and concurrency_key', num_nulls(
        release_key.queue, coalesce(release_key.concurrency_key, release_key.kind)
    ));
    perform jobq_private.check_argument(case
        when num_nonnulls(release_key.concurrency_key, release_key.kind) = 2
        then 'give concurrency_key or kind, not both'
    end);
    with released as (
        delete from jobq_private.limit_hold as h
        where h.limit_id = jobq_private.limit_id(
            release_key.queue, release_key.kind, release_key.concurrency_key
        )
        returning h.held_until
    )
    select coalesce(max(r.held_until) > clock_timestamp(), false) into _was_held
    from released as r;
    if _was_held then
        -- open ones, too: a claim may close them before this commits
        perform jobq_private.open_again(array(
            select w
            from jobq_private.waiting_key as w
            where w.queue = release_key.queue
            and case
                when release_key.kind is null then w.concurrency_key = release_key.concurrency_key
                else w.key_id = jobq_private.limit_id(null, release_key.kind, null)
            end
        ));
        perform jobq_private.wake(array[release_key.queue]);
        perform jobq_private.record_audit(
            'release_key', concat_ws(' ', queue, concurrency_key, 'kind ' || kind), null
        );
    end if;
    return _was_held;
end
$$;

grant execute on function jobq.release_key to jobq_operator;

comment on function jobq.release_key is 'Lets the jobs of a held concurrency key, or of a held kind, start again, and returns whether it was held.';

-- Purpose: Reports what a running attempt has really cost, and corrects its rates and
-- budgets, up or down.
-- Invariant: only the attempt that holds the lease. The last report counts. Waits for a
-- transaction that starts jobs under the same limits. Raises: 22004, 22023, JQ001, JQ003.
-- Argument cost: from 0 to 10^12.
-- Returns: nothing.
-- Example: select jobq.spend(:'running', 1, 4500);
create or replace function jobq.spend(job_id uuid, attempt integer, cost numeric)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _job jobq_private.job;
    _charged numeric;
begin
    perform jobq_private.check_given('cost', num_nulls(spend.cost));
    perform jobq_private.check_argument(case
        when not spend.cost between 0 and 1000000000000
        then 'cost must be a number from 0 to 1000000000000'
    end);
    _job := jobq_private.lock_attempt(spend.job_id, spend.attempt);
    _charged := coalesce(_job.reported_cost, _job.cost, 1);
    update jobq_private.job as j set reported_cost = spend.cost where j.job_id = spend.job_id;
    if spend.cost = _charged then
        return;
    end if;
    perform jobq_private.charge(
        array[spend.job_id], true,
        jobq_private.lock_limits(array(select l from jobq_private.job_limits(_job) as l), true),
        spend.cost - _charged, _charged
    );
    if spend.cost < _charged then
        perform jobq_private.open_again(array(
            select w from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.state <> 'open'
        ));
        perform jobq_private.wake(_job.queue || array(
            select distinct w.queue from jobq_private.waiting_key as w where w.full_kind = _job.kind
        ));
    end if;
end
$$;

grant execute on function jobq.spend to jobq_worker;

comment on function jobq.spend is 'Reports what a running attempt has really cost, and corrects its rates and budgets, up or down.';

-- Purpose: refuse to take a job out of its key, or to give a running job's slot to
-- another queue. No hot statement fires it. Raises: JQ002.
create or replace function jobq_private.keep_key()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if (old.concurrency_key is not null
        and (new.key_id is null
            or new.concurrency_key is distinct from old.concurrency_key
            or (new.queue, new.key_id) <> (old.queue, old.key_id)
            and new.key_id
                <> jobq_private.key_of(new.queue, new.kind, new.concurrency_key, false)))
    or (old.slot is not null and new.queue <> old.queue)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: its key_id is that of its concurrency key, and a slot is of one queue',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_key
before update of concurrency_key, key_id, queue on jobq_private.job
for each row execute function jobq_private.keep_key();

-- Purpose: apply a change of the limits of a queue, its keys, or a kind to the next
-- claim: open closed keys, and count running jobs without a slot.
-- Invariant: fires only for real changes, also by raw SQL. Waits for no open claim and
-- blocks none. Jobs that such a claim starts under the old limits count when it
-- commits; maintain() finds a key that it closes.
create or replace function jobq_private.limits_changed()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _scope constant text := coalesce(to_jsonb(new), to_jsonb(old)) ->> tg_argv[0];
    _queue constant text := case when tg_argv[0] = 'queue' then _scope end;
    _kind constant text := case when tg_argv[0] = 'kind' then _scope end;
begin
    if not exists (
        select
        from jsonb_each(to_jsonb(old)) as o
        full join jsonb_each(to_jsonb(new)) as n using (key)
        where key ~ 'max_running|rate_|ordered|on_dead|budget'
        and nullif(o.value, 'null') is distinct from nullif(n.value, 'null')
    ) then
        return null;
    end if;
    -- Waits for nobody: if somebody holds the first row, that is another change, or a repeatable
    -- snapshot that started jobs before this change.
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.ctid = any(array(
        select o.ctid
        from jobq_private.limit_change as o
        where o.change_id = 1
        for update skip locked
    ));
    insert into jobq_private.limit_change (changed_at) values (clock_timestamp());
    perform jobq_private.open_again(array(
        select w
        from jobq_private.waiting_key as w
        where w.state <> 'open'
        and (w.queue = _queue or w.kind = _kind or w.full_kind = _kind)
    ));
    if _queue is not null then
        perform jobq_private.wake(array[_queue]);
    end if;
    return null;
end
$$;

create or replace trigger queue_limits
after insert or update or delete on jobq_private.queue
for each row execute function jobq_private.limits_changed('queue');

create or replace trigger kind_limits
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.limits_changed('kind');

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.limits_changed('queue');

commit;
