-- Deploy jobq:work to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: how long to wait before the next attempt.
-- Invariant: fixed: d; linear: d·n; exponential: d·2^(n-1); each then ± jitter·delay, and at most
-- max_delay. decorrelated: uniform from d to the lesser of max_delay and d·3^n (after "Exponential
-- Backoff And Jitter", AWS Architecture Blog, 2015). Constraints of the declarations check the values.
create or replace function jobq_private.backoff(
    strategy text, initial_delay interval, max_delay interval, jitter double precision,
    attempt integer
)
returns interval
language plpgsql
as $$
declare
    _initial constant double precision := extract(epoch from initial_delay);
    _max constant double precision := extract(epoch from max_delay);
    _growth constant integer := least(attempt, 64);
    _seconds double precision := case strategy
        when 'fixed' then _initial
        when 'linear' then _initial * attempt
        when 'exponential' then _initial * 2::double precision ^ (_growth - 1)
        when 'decorrelated' then _initial + random() * greatest(
            0, least(_max, _initial * 3::double precision ^ _growth) - _initial
        )
    end;
begin
    _seconds := _seconds * (1 + jitter * (2 * random() - 1));
    return make_interval(secs => least(_seconds, _max));
end
$$;

-- Purpose: refuse job ids and attempts that are not parallel. Raises: 22004, 22023.
create or replace function jobq_private.check_attempts(job_ids uuid[], attempts integer[])
returns void
language plpgsql
stable
as $$
begin
    perform jobq_private.check_given('job_ids and attempts', num_nulls(job_ids, attempts));
    perform jobq_private.check_argument(case when cardinality(job_ids) <> cardinality(attempts)
        then 'job_ids and attempts must have the same length' end);
end
$$;

-- Purpose: refuse a claim with invalid arguments. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[] default '{}', worker text default 'w', max_jobs integer default 0,
    except_kinds text[] default null, max_limited integer default null,
    kinds text[] default null
)
returns void
language plpgsql
stable
as $$
declare
    _problem constant text[] := case
        when greatest(array_ndims(queues), array_ndims(except_kinds), array_ndims(kinds)) > 1
        then array['INVALID_ARGUMENT', 'queues, except_kinds and kinds must be one-dimensional']
        when queues is null or array_position(queues, null) is not null
        then array['NULL_ARGUMENT', 'queues']
        when array_position(except_kinds, null) is not null
        then array['NULL_ARGUMENT', 'except_kinds']
        when array_position(kinds, null) is not null then array['NULL_ARGUMENT', 'kinds']
        when worker is null then array['NULL_ARGUMENT', 'worker']
        when max_jobs is null then array['NULL_ARGUMENT', 'max_jobs']
        when length(worker) not between 1 and 256
        then array['INVALID_ARGUMENT', 'worker must have 1 to 256 characters']
        when max_jobs not between 0 and 10000
        then array['INVALID_ARGUMENT', 'max_jobs must be from 0 to 10000']
        when max_limited < 0 then array['INVALID_ARGUMENT', 'max_limited must be at least 0']
    end;
begin
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
end
$$;

-- Purpose: refuse a settlement whose parts do not fit together, or with a result that is too large
-- or too deep; return the results. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_results(
    job_ids uuid[], attempts integer[], results jsonb
)
returns jsonb
language plpgsql
stable
as $$
begin
    if (cardinality(job_ids) = cardinality(attempts)) is not true then
        perform jobq_private.check_attempts(job_ids, attempts);  -- names what is wrong
    elsif results is null then
        return null;
    elsif jsonb_typeof(results) <> 'array'
        or jsonb_array_length(results) <> cardinality(job_ids)
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'results must be a JSON array with the length of job_ids'
        );
    end if;
    perform jobq_private.check_problem(
        c.problem[1], format('result %s: %s', r.n, c.problem[2])
    )
    from jobq_private.setting as g
    cross join jsonb_array_elements(results) with ordinality as r (result, n)
    cross join lateral (
        select jobq_private.value_problem(r.result, g.max_payload_bytes, g.max_payload_depth)
        offset 0
    ) as c (problem)
    where not jobq_private.is_small(r.result, g.max_payload_depth)
    and c.problem is not null
    limit 1;
    return results;
end
$$;

-- Purpose: lock the jobs of a queue that a claim takes next, by priority, then due_at; return
-- where they are. kinds, except_kinds and a priority narrow it down.
-- Invariant: SKIP LOCKED. A scan begins at the cursor, where the last one of this session ended. If
-- it finds nothing there, and twice a second for what was committed late or came back, it begins
-- at the watermarks. Callers pin the planner's settings.
create or replace function jobq_private.find_jobs(
    queue text, max_jobs integer, except_kinds text[] default null, kinds text[] default null,
    priority integer default null
)
returns tid[]
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint jobq_private.claim_hint := jobq_private.read_hint(find_jobs.queue, _now);
    _found tid[];
begin
    if _hint.priorities = '{}' then
        return '{}'::tid[];
    elsif _hint.priorities is null and find_jobs.priority is null then
        _hint := jobq_private.keep_hint(_hint, _now);
        return jobq_private.find_jobs_from_head(queue, max_jobs, except_kinds, kinds);
    elsif _now >= _hint.refresh_at or find_jobs.kinds is not null then
        _hint.priority := null;
    end if;
    for _pass in 1 .. 2 loop
        -- One range of the index for each priority; the loop over them stops at max_jobs. The last
        -- job is the next cursor, unless other kinds may wait before it. Without one, also when
        -- the first pass has found nothing, all ranges begin at their watermarks.
        select
            array_agg(f.ctid),
            (array_agg(f.priority) filter (where find_jobs.kinds is null))[count(*)],
            (array_agg(f.due_at) filter (where find_jobs.kinds is null))[count(*)],
            (array_agg(f.job_id) filter (where find_jobs.kinds is null))[count(*)]
        into _found, _hint.priority, _hint.due_at, _hint.job_id
        from (
            select f.*
            from unnest(
                coalesce(_hint.priorities, array[find_jobs.priority]),
                coalesce(_hint.watermarks, '{-infinity}')
            ) as p (priority, watermark)
            cross join lateral (
                select j.ctid, j.priority, j.due_at, j.job_id
                from jobq_private.job as j
                where j.queue = find_jobs.queue and j.priority = p.priority
                and j.state in ('queued', 'retrying')
                and (j.due_at, j.job_id) >= (
                    case when p.priority = _hint.priority then _hint.due_at else p.watermark end,
                    case
                        when p.priority = _hint.priority then _hint.job_id
                        else '00000000-0000-0000-0000-000000000000'
                    end
                )
                and j.due_at <= _now
                and (find_jobs.except_kinds is null or j.kind <> all(find_jobs.except_kinds))
                and (find_jobs.kinds is null or j.kind = any(find_jobs.kinds))
                -- A row that others have claimed since this snapshot would be locked, found to run,
                -- and kept from its worker until the commit. So the first pass leaves what another
                -- transaction has touched that had not ended.
                and (
                    _pass = 2 or j.xmax = '0' or j.xmax = j.xmin
                    or j.xmax = pg_current_xact_id_if_assigned()::xid
                    or age(j.xmax) > age(pg_snapshot_xmax(pg_current_snapshot())::xid)
                    and j.xmax <> all(array(select x::xid from pg_snapshot_xip(pg_current_snapshot()) as x))
                )
                order by j.due_at, j.job_id
                limit find_jobs.max_jobs
                for update skip locked
            ) as f
            where find_jobs.priority is null or p.priority = find_jobs.priority
            limit find_jobs.max_jobs
        ) as f;
        exit when _found is not null;
    end loop;
    if _found is not null or _now >= _hint.refresh_at then
        _hint := jobq_private.keep_hint(_hint, _now);
    end if;
    return coalesce(_found, '{}'::tid[]);
end
$$;

-- Purpose: lock the jobs of a queue that a claim takes next, by one scan from the head of the queue.
-- For queues in which too many priorities are in use; else see find_jobs().
-- Invariant: SKIP LOCKED. Callers pin the planner's settings. Raises: nothing.
create or replace function jobq_private.find_jobs_from_head(
    queue text, max_jobs integer, except_kinds text[], kinds text[]
)
returns tid[]
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return array(
        select j.ctid
        from jobq_private.job as j
        where j.queue = find_jobs_from_head.queue
        and j.state in ('queued', 'retrying')
        and j.due_at <= _now
        and (find_jobs_from_head.except_kinds is null or j.kind <> all(except_kinds))
        and (find_jobs_from_head.kinds is null or j.kind = any(kinds))
        order by j.priority desc, j.due_at, j.job_id
        limit max_jobs
        for update skip locked
    );
end
$$;

-- Purpose: when the first job of a queue that waits only for time is due; null if none waits.
-- Invariant: one index probe for each priority in use, or a scan if these are too many. Callers
-- pin the planner's settings.
create or replace function jobq_private.first_due(queue text, except_kinds text[])
returns timestamptz
language plpgsql
stable
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint constant jobq_private.claim_hint := jobq_private.read_hint(first_due.queue, _now);
begin
    if _hint.priorities is null then
        return (
            select min(j.due_at)
            from jobq_private.job as j
            where j.queue = first_due.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
        );
    end if;
    return (
        select min(f.due_at)
        from unnest(_hint.priorities, _hint.watermarks) as p (priority, watermark)
        cross join lateral (
            select j.due_at
            from jobq_private.job as j
            where j.queue = first_due.queue
            and j.state in ('queued', 'retrying')
            and j.priority = p.priority
            and j.due_at >= p.watermark
            and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
            order by j.due_at, j.job_id
            limit 1
        ) as f
    );
end
$$;

-- Purpose: why lock_attempts() has not locked the job of an attempt: another transaction holds it, or
-- the attempt has lost its lease.
-- Raises: nothing.
create or replace function jobq_private.held_or_lost(job_id uuid, attempt integer)
returns text
language plpgsql
stable
as $$
begin
    return case when exists (
        select from jobq_private.job as j
        where j.job_id = held_or_lost.job_id and j.attempt = held_or_lost.attempt
        and j.lease_expires_at is not null
    ) then 'held' else 'lost' end;
end
$$;

-- Purpose: whether another session holds an advisory lock.
-- Invariant: tries the lock and releases it in one expression, so that no cancel comes between.
-- Two sessions that test at once may take each other for a holder. Inlined, so no SET clause.
create or replace function jobq_private.is_locked(class text, key integer)
returns boolean
language sql
as $$
    select not (
        pg_catalog.pg_try_advisory_lock(jobq_private.lock_class(class), key)
        and pg_catalog.pg_advisory_unlock(jobq_private.lock_class(class), key)
    )
$$;

-- Purpose: remember for the session's next claims what this one has learned of a queue, and twice
-- a second move its watermarks.
-- Invariant: a job gets its due_at after its transaction has got its number. So when all
-- transactions have ended that were open at a moment, the candidate, no job due before it can
-- appear any more. Then each watermark moves there, or to the first waiting job, locked or not,
-- because a claim may be rolled back. So claims walk each dead entry of the index a bounded number
-- of times. Callers assign what it returns: an expression costs less than PERFORM.
create or replace function jobq_private.keep_hint(
    hint jobq_private.claim_hint, now timestamptz
)
returns jobq_private.claim_hint
language plpgsql
as $$
declare
    _hint jobq_private.claim_hint := hint;
begin
    if keep_hint.now >= _hint.refresh_at and _hint.priorities is not null then
        if pg_snapshot_xmin(pg_current_snapshot()) >= _hint.horizon then
            _hint.watermarks := array(
                select greatest(p.watermark, least(_hint.candidate, (
                    select j.due_at
                    from jobq_private.job as j
                    where j.queue = _hint.queue
                    and j.state in ('queued', 'retrying')
                    and j.priority = p.priority
                    and j.due_at >= p.watermark
                    order by j.due_at, j.job_id
                    limit 1
                )))
                from unnest(_hint.priorities, _hint.watermarks)
                    with ordinality as p (priority, watermark, n)
                order by p.n
            );
            _hint.horizon := null;
        end if;
        if _hint.horizon is null then
            _hint.candidate := now();
            _hint.horizon := pg_snapshot_xmax(pg_current_snapshot());
        end if;
        _hint.refresh_at := clock_timestamp()
            + greatest(interval '0.5 s', 20 * (clock_timestamp() - keep_hint.now));
    end if;
    return case when set_config(
        'jobq.hint_' || (hashtext(_hint.queue) & 1023), _hint::text, false
    ) is not null then _hint end;
end
$$;

-- Purpose: a failure as it is stored: its error and details redacted, or instead of details that are
-- too large or too deep only the reason why they were omitted.
-- Raises: 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_failure(failure jobq_private.failure)
returns jobq_private.failure
language plpgsql
stable
as $$
declare
    _problem text[];
begin
    perform jobq_private.check_argument(case
        when failure.retry_in not between '0' and '365 days'
            or jsonb_typeof(failure.details) <> 'object'
        then 'retry_in must be from 0 to 365 days, details an object'
    end);
    if failure.details is not null then
        select jobq_private.value_problem(
            failure.details, g.max_payload_bytes, g.max_payload_depth
        ) into _problem
        from jobq_private.setting as g;
        failure.details := case
            when _problem is null then jobq_private.redacted_json(failure.details)
            else jsonb_build_object('omitted', _problem[2])
        end;
    end if;
    failure.error := jobq_private.redacted(failure.error);
    failure.error_code := coalesce(failure.error_code, 'ERROR');
    return failure;
end
$$;

-- Purpose: lock the row of the job that an attempt holds until the commit, and return the row.
-- Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.lock_attempt(job_id uuid, attempt integer)
returns jobq_private.job
language plpgsql
as $$
declare
    _job jobq_private.job;
begin
    select j.* into _job
    from jobq_private.job as j
    where j.job_id = lock_attempt.job_id
    and j.attempt = lock_attempt.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(lock_attempt.job_id, lock_attempt.attempt);
    end if;
    return _job;
end
$$;

-- Purpose: lock the jobs that these attempts hold, and return those that no other transaction holds.
-- Invariant: waits for nobody. Raises: nothing.
create or replace function jobq_private.lock_attempts(job_ids uuid[], attempts integer[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
begin
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(lock_attempts.job_ids)
        and (j.job_id, j.attempt) in (
            select f.* from unnest(lock_attempts.job_ids, lock_attempts.attempts) as f
        )
        and j.lease_expires_at is not null
        for update of j skip locked
    );
end
$$;

-- Purpose: the first key of each class of advisory locks; all that jobq takes are here. waiting,
-- producing and awaiting are W, P and E of docs/contributing/design.md. Inlined, so no SET clause.
create or replace function jobq_private.lock_class(name text)
returns integer
language sql
immutable
as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'making' then 1785684600
        when 'expecting' then 1785684610
        when 'joining' then 1785684611
        when 'awaiting' then 1785684612
        when 'awaiting_events' then 1785684613
        when 'streaming' then 1785684614
    end
$$;

-- Purpose: the queues that a worker claims from: the given names, and before each that ends in * the
-- queues with waiting jobs that begin like it, in random order, so that none comes last each time.
-- Invariant: queues are found in the rows of waiting jobs, so a new one is there at once. One descent
-- of an index for each queue with waiting jobs, and nothing where no name ends in *. Callers pin
-- the planner's settings.
create or replace function jobq_private.match_queues(queues text[])
returns text[]
language plpgsql
stable
as $$
begin
    if strpos(array_to_string(queues, ' '), '*') = 0 then
        return queues;
    end if;
    return array(
        select u.queue
        from (
            select w.queue, (
                select min(g.n)
                from unnest(match_queues.queues) with ordinality as g (queue, n)
                where jobq_private.serves(array[g.queue], w.queue)
            ), 1
            from jobq_private.waiting_queue as w
            where w.queue <> all(match_queues.queues)
            union all
            select g.queue, g.n, 2
            from unnest(match_queues.queues) with ordinality as g (queue, n)
        ) as u (queue, n, rank)
        where u.n is not null
        order by u.n, u.rank, hashtext(u.queue || clock_timestamp())
    );
end
$$;

-- Purpose: when the next job of these queues becomes runnable: in the past if one is due, null if
-- none waits. Paused jobs do not count. See on_wait().
create or replace function jobq_private.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    next_due.except_kinds := nullif(next_due.except_kinds || array(
        select p.kind from jobq_private.paused_kind as p
    ), '{}');
    return (
        select case when d.due_at < 'infinity' then greatest(d.due_at, '0001-01-02 UTC') end
        from jobq_private.on_wait(
            jobq_private.match_queues(next_due.queues), next_due.except_kinds
        ) as d (due_at)
        where '*' = any(next_due.except_kinds) is not true
    );
end
$$;

-- Purpose: send a notification at commit, and return whether it is sent.
-- Invariant: not after `set jobq.notify = off`, which a transaction needs that is to be prepared,
-- nor if the notification queue is half full: polling is sufficient. Inlined, so no SET clause.
create or replace function jobq_private.notify(channel text, payload text)
returns boolean
language sql
as $$
    select pg_catalog.pg_notification_queue_usage() < 0.5
    and pg_catalog.current_setting('jobq.notify', true) is distinct from 'off'
    and pg_catalog.pg_notify(channel, payload) is not null
$$;

-- Purpose: hook, called when a claim begins. Returns the queues in which it may find something, in
-- their order: those that are not paused, and of more than 16, those with waiting jobs.
create or replace function jobq_private.on_claim(queues text[], except_kinds text[])
returns jobq_private.claim_plan
language plpgsql
stable
as $$
declare
    _plan jobq_private.claim_plan;
begin
    select
        array(
            select q.queue
            from unnest(on_claim.queues) with ordinality as q (queue, n)
            left join jobq_private.queue as d on d.queue = q.queue
            where d.paused_at is null
            and (cardinality(on_claim.queues) <= 16 or (
                select true
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.due_at is not null
                limit 1
            ))
            order by q.n
        ),
        nullif(on_claim.except_kinds || array(
            select p.kind from jobq_private.paused_kind as p
        ), '{}')
    into _plan.queues, _plan.except_kinds;
    return _plan;
end
$$;

-- Purpose: hook, called in place of find_jobs() for a queue that on_claim() has called special. Returns
-- the jobs already started and those to start. In the core no queue is special.
create or replace function jobq_private.on_queue(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn
language sql
as $$
    select row(
        '{}', jobq_private.find_jobs(queue, max_jobs, except_kinds, kinds), null, 0
    )::jobq_private.claim_turn
$$;

-- Purpose: hook: when the next job of these queues is due, for an idle worker; null if none waits.
-- Paused queues have none.
create or replace function jobq_private.on_wait(queues text[], except_kinds text[])
returns timestamptz
language plpgsql
stable
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return (
        select min(jobq_private.first_due(q.queue, on_wait.except_kinds))
        from unnest(on_wait.queues) as q (queue)
        where not exists (
            select from jobq_private.queue as p
            where p.queue = q.queue and p.paused_at is not null
        )
    );
end
$$;

-- Purpose: delete idempotency keys past their retention, ended throttles, and workers long gone;
-- return how many keys or throttles, whichever are more. The key of a live job stays.
create or replace function jobq_private.prune_keys(max_rows integer)
returns bigint
language plpgsql
as $$
declare
    _throttles bigint;
    _keys bigint;
begin
    delete from jobq_private.worker as w where w.seen_at < now() - interval '10 min';

    delete from jobq_private.throttle as t
    where t.ctid = any (array(
        select o.ctid from jobq_private.throttle as o
        where o.until < now()
        limit prune_keys.max_rows
        for update skip locked
    ));
    get diagnostics _throttles = row_count;

    with old as materialized (
        select k.kind, k.idempotency_key
        from jobq_private.idempotency_key as k
        where k.created_at < now() - (select g.key_retention from jobq_private.setting as g)
        and not exists (select from jobq_private.job as j where j.job_id = k.job_id)
        order by k.created_at
        limit prune_keys.max_rows
        for update skip locked
    )
    delete from jobq_private.idempotency_key as k
    using old as o
    where k.kind = o.kind and k.idempotency_key = o.idempotency_key;
    get diagnostics _keys = row_count;
    return greatest(_keys, _throttles);
end
$$;

-- Purpose: read failures from a JSON array, as kept_failure() returns them. Raises: 22004, 22023.
create or replace function jobq_private.read_failures(failures jsonb)
returns jobq_private.failure[]
language sql
stable
as $$
    select array_agg(jobq_private.kept_failure(f))
    from unnest(jobq_private.read_records(
        null::jobq_private.failure, 'failures', failures,
        '{job_id,attempt,error,error_code,retryable,retry_in,details}'
    )) as f
$$;

-- Purpose: what this session remembers of a queue, completed by priorities that have come into
-- use.
-- Invariant: forgets all after a minute, and if the clock was put back to before it was noted, so
-- that nothing stays unseen for longer. Probes only between the known priorities, where no dead entries are; a new
-- hint knows none, so its first claim reads the queue from the head.
-- Priorities are null from the 17th on.
create or replace function jobq_private.read_hint(queue text, now timestamptz)
returns jobq_private.claim_hint
language plpgsql
stable
as $$
declare
    _hint jobq_private.claim_hint := nullif(
        current_setting('jobq.hint_' || (hashtext(read_hint.queue) & 1023), true), ''
    )::jobq_private.claim_hint;
    _new integer[];
begin
    if _hint.queue is distinct from read_hint.queue
        or read_hint.now not between _hint.expires_at - interval '1 min' and _hint.expires_at
    then
        _hint := null;
        _hint.queue := read_hint.queue;
        _hint.expires_at := read_hint.now + interval '1 min';
        _hint.refresh_at := read_hint.now;
        _hint.priorities := '{}';
        _hint.watermarks := '{}';
    end if;
    while _hint.priorities is not null loop
        _new := array(
            select n.priority
            from unnest(32768 || _hint.priorities, _hint.priorities || -32769)
                as g (above, below)
            cross join lateral (
                select j.priority
                from jobq_private.job as j
                where j.queue = read_hint.queue
                and j.state in ('queued', 'retrying')
                and j.due_at is not null
                and j.priority < g.above
                and j.priority > g.below
                order by j.priority desc, j.due_at, j.job_id
                limit 1
            ) as n
        );
        exit when _new = '{}';
        select array_agg(p.priority order by p.priority desc),
            array_agg(p.watermark order by p.priority desc)
        into _hint.priorities, _hint.watermarks
        from (
            select k.priority, k.watermark
            from unnest(_hint.priorities, _hint.watermarks) as k (priority, watermark)
            union all
            select n.priority, '-infinity' from unnest(_new) as n (priority)
        ) as p
        having count(*) <= 16;
    end loop;
    return _hint;
end
$$;

-- Purpose: recover() as a task of maintain().
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.recover_leases(max_rows integer)
returns bigint
language sql
as $$
    select count(*) from jobq_internal.recover(max_rows)
$$;

-- Purpose: raise the reason why an attempt does not hold a job. Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.refuse_attempt(job_id uuid, attempt integer)
returns void
language plpgsql
stable
as $$
declare
    _state text;
    _attempt integer;
begin
    perform jobq_private.check_given('job_id and attempt', num_nulls(job_id, attempt));
    select j.state, j.attempt into _state, _attempt
    from jobq.get_job(refuse_attempt.job_id) as j;
    perform jobq_private.raise_error('LEASE_LOST', format(
        'job_id %s, attempt %s: the job is %s at attempt %s',
        refuse_attempt.job_id, refuse_attempt.attempt, _state, _attempt
    ));
end
$$;

-- Purpose: whether these queues of a worker include a queue: by its name, or by a name that ends in *.
create or replace function jobq_private.serves(queues text[], queue text)
returns boolean
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return serves.queue = any(serves.queues) or exists (
        select from unnest(serves.queues) as p (pattern)
        where right(p.pattern, 1) = '*' and starts_with(serves.queue, left(p.pattern, -1))
    );
end
$$;

-- Purpose: end failed attempts: retrying while attempts are left, else dead; cancelled if that was
-- requested. An expired lease retries at once, other failures after their backoff.
-- Invariant: jobs are locked in the order of their ids, so batches cannot deadlock. Only the
-- attempt that holds the lease counts. Triggers record the attempts, as for a raw update.
create or replace function jobq_private.settle_failures(
    failures jobq_private.failure[], is_expiry boolean default false
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _max_expiries constant integer := (select g.max_expiries from jobq_private.setting as g);
    _ids constant uuid[] := array(select f.job_id from unnest(settle_failures.failures) as f);
    _jobs uuid[];
    _attempts integer[];
    _states text[];
begin
    with locked as materialized (
        select
            j.job_id, f.error, f.error_code, f.details, a.max_attempts, case
                when j.cancel_requested_at is not null then 'cancelled'
                when not coalesce(f.retryable, true) then 'dead'
                when j.attempt - j.uncounted >= a.max_attempts then 'dead'
                when settle_failures.is_expiry and j.expiries + 1 >= _max_expiries then 'dead'
                else 'retrying'
            end as outcome, case
                when settle_failures.is_expiry then '0'
                else coalesce(f.retry_in, (
                    select jobq_private.backoff(
                        p.retry_strategy, p.retry_initial_delay, p.retry_max_delay,
                        p.retry_jitter, j.attempt - j.uncounted
                    )
                    from jobq_private.retry_policy_for(
                        j.kind, j.queue, j.delivery_version
                    ) as p
                ))
            end as retry_in
        from unnest(settle_failures.failures) as f
        join jobq_private.job as j
            on j.job_id = any(_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        cross join lateral (
            select jobq_private.max_attempts_for(
                j.kind, j.queue, j.created_at, j.max_attempts
            )
        ) as a (max_attempts)
        order by j.job_id
        for update of j
    ),
    changed as (
        update jobq_private.job as j
        set
            state = case when l.outcome = 'retrying' then l.outcome else j.state end,
            max_attempts = l.max_attempts,
            expiries = j.expiries + settle_failures.is_expiry::integer,
            last_error = left(l.error, 512),
            last_error_code = left(l.error_code, 128),
            last_error_details = l.details,
            run_at = case
                when l.outcome = 'retrying' then clock_timestamp() + l.retry_in else j.run_at
            end
        from locked as l
        where j.job_id = any(_ids)
        and j.job_id = l.job_id
        returning j.job_id, j.attempt, l.outcome
    )
    select array_agg(c.job_id), array_agg(c.attempt), array_agg(c.outcome)
    into _jobs, _attempts, _states
    from changed as c;

    -- What has ended moves into the archive as a set, and not one by one.
    perform jobq_private.archive_jobs(array_agg(s.job_id), array_agg(s.attempt), s.state)
    from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state)
    where s.state <> 'retrying'
    group by s.state;
    return query select s.* from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state);
end
$$;

-- Purpose: start jobs that a claim has locked, and return them in their order; one that has expired
-- dies instead. slots has the slot of each where a limit of running jobs applies.
-- Invariant: by ctid, since nobody else can move what is locked; only a loop over the jobs can use
-- it, so their order stays. The only function that may set attempt: see job_start. The clock is
-- read here, after what runs was counted, so that no end of what made room is later. Callers pin
-- the planner's settings.
create or replace function jobq_private.start_jobs(
    jobs tid[], worker text, slots smallint[] default null
)
returns setof jobq.claimed_job
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return query
    update jobq_private.job as j
    set
        state = 'running', previous_state = j.state,
        transition_slot = pg_backend_pid() & 1023, worker = start_jobs.worker,
        attempt = j.attempt + 1, claimed_at = _now, lease_expires_at = _now + j.lease,
        slot = s.slot
    from unnest(start_jobs.jobs, start_jobs.slots) as s (job, slot)
    where j.ctid = s.job
    returning
        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts, j.timeout,
        j.lease_expires_at, j.run_at::timestamptz, j.created_at, j.idempotency_key, j.lease,
        j.delivery_version, j.is_awaited or j.slot is not null or j.batch_id is not null;
end
$$;

-- Purpose: the queues with waiting jobs, found by stepping from each to the next.
-- Invariant: two descents of an index per queue, however many jobs wait: one index has
-- the jobs with keys, another those without.
create or replace view jobq_private.waiting_queue as
with recursive step (queue) as (
    select ''
    union all
    select least(
        (
            select j.queue
            from jobq_private.job as j
            where j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.queue > s.queue
            order by j.queue
            limit 1
        ),
        (
            select j.queue
            from jobq_private.job as j
            where j.state in ('queued', 'retrying')
            and j.key_id is not null
            and j.queue > s.queue
            order by j.queue
            limit 1
        )
    )
    from step as s
    where s.queue is not null
)
select s.queue from step as s where s.queue <> '';

comment on view jobq_private.waiting_queue is 'the queues with waiting jobs, found by stepping from each to the next.';

-- Purpose: announce jobs of these queues until the transaction ends, and notify every listening
-- session of each queue for which a worker sleeps, at its commit.
-- Invariant: the producer locks P (shared) before it tests W; an idle worker locks W (shared) before
-- it tests P. So one of them always sees the other, and NOTIFY, whose lock serializes commits, is
-- sent only if a worker sleeps: docs/contributing/design.md has the proof. Queues share 1024 locks.
-- A caller with more than 16 queues takes 16 wider locks instead. Every sleeping worker also holds
-- W 1040. Callers pin the search path.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
as $$
declare
    _queue text;
    _narrow integer;
    _wide integer;
begin
    foreach _queue in array wake.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        if pg_advisory_xact_lock_shared(
            jobq_private.lock_class('producing'),
            case when cardinality(wake.queues) > 16 then _wide else _narrow end
        ) is not null and jobq_private.is_locked('waiting', 1040) then
            -- Apart, because PostgreSQL prepares the whole of a condition that it comes to.
            if jobq_private.is_locked('waiting', _narrow) or jobq_private.is_locked('waiting', _wide) then
                perform jobq_private.notify('jobq', _queue);
            end if;
        end if;
    end loop;
end
$$;

-- Purpose: Marks the listening session as waiting on these queues; returns true if no enqueue in
-- progress could be missed.
-- Invariant: true means that every producer that did not see this session wait has committed;
-- false, that one of them may still be open. So a worker that follows the answer misses no enqueue.
-- Inside: W (shared, session) is taken before P is tried; jobq_private.wake() says which locks stand
-- for a queue. Raises: 22004, 22023.
-- Argument queues: the queues from which the worker claims. Name those that a pattern such as tenant-*
-- has matched: no producer wakes a worker for the pattern itself.
-- Returns: true: claim once more, and if that returns nothing, sleep until notified; false:
-- claim, and call again after some milliseconds.
-- Example: select jobq.begin_wait('{default}');
create or replace function jobq.begin_wait(queues text[])
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := jobq_private.lock_class('producing');
    _waiting constant integer := jobq_private.lock_class('waiting');
    _is_wide constant boolean := cardinality(begin_wait.queues) > 16;
    _queue text;
    _narrow integer;
    _wide integer;
    _is_quiet boolean := true;
begin
    perform jobq_private.check_claim(begin_wait.queues);
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(_waiting, 1040);
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        perform pg_advisory_lock_shared(
            _waiting, case when _is_wide then 1024 + (_narrow & 15) else _narrow end
        );
    end loop;
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        _is_quiet := _is_quiet
            and pg_try_advisory_lock(_producing, _narrow)
            and pg_advisory_unlock(_producing, _narrow)
            and pg_try_advisory_lock(_producing, _wide)
            and pg_advisory_unlock(_producing, _wide);
    end loop;
    return _is_quiet;
end
$$;

grant execute on function jobq.begin_wait to jobq_worker;

comment on function jobq.begin_wait is 'Marks the listening session as waiting on these queues; returns true if no enqueue in progress could be missed.';

-- Purpose: Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due
-- time and id.
-- Invariant: SKIP LOCKED, so callers neither share a job nor wait. Queues in the order given; in a
-- queue by priority, then by the moment at which a job became due (run_at, or when it was stored
-- or came back if that is later), then by id. Keys take turns. Raises: 22004, 22023.
-- Never: LIMIT_REACHED, since no single job is asked for.
-- Argument queues: names, in the order in which they are claimed from. A name that ends in *, such as
-- tenant-*, stands for all queues that begin like it, in random order.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Argument kinds: only jobs of these kinds; null means all.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null, kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _left integer := claim.max_jobs;
    _plan jobq_private.claim_plan;
    _turn jobq_private.claim_turn;
    _queue text;
begin
    perform jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds, claim.max_limited,
        claim.kinds
    );
    if _left = 0 then
        return;
    end if;
    _plan := jobq_private.on_claim(
        jobq_private.match_queues(claim.queues), claim.except_kinds
    );
    foreach _queue in array _plan.queues loop
        exit when _left = 0 or '*' = any(_plan.except_kinds);
        if _queue = any(_plan.special) then
            _turn := jobq_private.on_queue(
                _queue, claim.worker, _left, claim.max_limited, _plan.except_kinds, claim.kinds
            );
            return query select j.* from unnest(_turn.jobs) as j;
            _left := _left - cardinality(_turn.jobs);
            claim.max_limited := claim.max_limited - _turn.limited;
        else
            _turn.found := jobq_private.find_jobs(
                _queue, _left, _plan.except_kinds, claim.kinds
            );
            _turn.slots := null;
        end if;
        if _turn.found <> '{}' then
            return query
            select s.*
            from jobq_private.start_jobs(_turn.found, claim.worker, _turn.slots) as s;
            _left := _left - cardinality(_turn.found);
        end if;
    end loop;
end
$$;

grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is 'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due time and id.';

-- Purpose: Leases one job by id to a worker, or returns nothing if it cannot run now.
-- Invariant: SKIP LOCKED; a job that is not due, or whose queue or kind is paused, is not taken. Waits for
-- transactions that start jobs under the same limits. Raises: 22004, 22023.
-- Returns: a row of jobq.claimed_job, or none.
-- Example: select * from jobq.claim_job(:'waiting', 'worker-1');
create or replace function jobq.claim_job(job_id uuid, worker text)
returns setof jobq.claimed_job
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('job_id', num_nulls(claim_job.job_id));
    perform jobq_private.check_claim(worker => claim_job.worker);
    return query
    with found as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = claim_job.job_id
        and j.state in ('queued', 'retrying')
        and j.run_at <= clock_timestamp()
        and not exists (
            select from jobq_private.queue as q
            where q.queue = j.queue and q.paused_at is not null
        )
        and not exists (
            select from jobq_private.paused_kind as p where p.kind in (j.kind, '*')
        )
        for update skip locked
    )
    -- the trigger checks the limits
    update jobq_private.job as j
    set state = 'running', worker = claim_job.worker
    from found as f
    where j.job_id = f.job_id
    returning
        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts,
        j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
        j.idempotency_key, j.lease, j.delivery_version,
        j.is_awaited or j.slot is not null or j.batch_id is not null;
exception
    when sqlstate 'JQ011' then
        return;
end
$$;

grant execute on function jobq.claim_job to jobq_worker;

comment on function jobq.claim_job is 'Leases one job by id to a worker, or returns nothing if it cannot run now.';

-- Purpose: Ends an attempt as succeeded: returns true the first time, false when repeated; raises
-- an error if the lease is lost.
-- Invariant: true once; false if the same attempt has already completed the job, as after a commit
-- with unknown outcome; otherwise the lease is lost and nothing changes. A lease that has expired
-- is lost only when recover() has ended the attempt. A job with keep_succeeded '0' leaves no
-- trace, so a repeated call raises JQ001.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Never: INVALID_ARGUMENT.
-- Returns: true; false if the same attempt has already completed the job.
-- Example: select jobq.complete(:'running', 1, '{"message_id": "42"}');
create or replace function jobq.complete(
    job_id uuid, attempt integer, result jsonb default null
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _outcome text;
begin
    select c.outcome into _outcome
    from jobq.complete_many(
        array[complete.job_id], array[complete.attempt],
        case when complete.result is not null then jsonb_build_array(complete.result) end
    ) as c;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(complete.job_id, complete.attempt);
    end if;
    return _outcome = 'succeeded';
end
$$;

grant execute on function jobq.complete to jobq_worker;

comment on function jobq.complete is 'Ends an attempt as succeeded: returns true the first time, false when repeated; raises an error if the lease is lost.';

-- Purpose: Ends many attempts as succeeded, and returns for each whether it still had its lease.
-- Invariant: results is an array parallel to the ids. Each attempt counts once; a stale one changes
-- nothing and does not hold up the rest.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated if the same attempt had already succeeded; or lost if it
-- has lost its lease.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
    _moved constant bigint[] := coalesce(jobq_private.archive_jobs(
        complete_many.job_ids, complete_many.attempts, 'succeeded', jobq_private.check_results(
            complete_many.job_ids, complete_many.attempts, complete_many.results
        )
    ), '{}');
    _repeated bigint[];
begin
    -- Only then, because the query locks every partition. The time leaves most of them unread.
    if cardinality(_moved) < cardinality(complete_many.job_ids) then
        _repeated := array(
            select s.n
            from unnest(complete_many.job_ids, complete_many.attempts)
                with ordinality as s (job_id, attempt, n)
            where s.n not in (select m.n from unnest(_moved) as m (n))  -- hashed
            and exists (
                select from jobq_private.job_archive as a
                where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
                and a.finished_at >= jobq_private.id_time(s.job_id) - interval '1 day'
            )
        );
    end if;
    return query
    select s.job_id, s.attempt, case
        when m.n is not null then 'succeeded'
        when r.n is not null then 'repeated'
        else 'lost'
    end
    from unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
    left join unnest(_moved) as m (n) on m.n = s.n
    left join unnest(_repeated) as r (n) on r.n = s.n
    order by s.n;
end
$$;

grant execute on function jobq.complete_many to jobq_worker;

comment on function jobq.complete_many is 'Ends many attempts as succeeded, and returns for each whether it still had its lease.';

-- Purpose: Ends an attempt as cancelled, if cancellation was requested.
-- Invariant: only the attempt that holds the lease can. Raises: 22004, JQ001, JQ002, JQ003.
-- Example: select jobq.confirm_cancel(:'cancelling', 1);
create or replace function jobq.confirm_cancel(job_id uuid, attempt integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when (jobq_private.lock_attempt(job_id, attempt)).cancel_requested_at is null
        then format('job_id %s: no cancellation was requested', confirm_cancel.job_id)
    end);
    update jobq_private.job as j
    set state = 'cancelled'
    where j.job_id = confirm_cancel.job_id;
end
$$;

grant execute on function jobq.confirm_cancel to jobq_worker;

comment on function jobq.confirm_cancel is 'Ends an attempt as cancelled, if cancellation was requested.';

-- Purpose: Returns the time until the next job of these queues is runnable, or null if none waits.
-- Invariant: a duration by the database's clock. Zero if there is work now, though limits may
-- hold it back. Raises: 22004.
-- Returns: the time until the next job is due; zero if one is due, null if none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[], except_kinds text[] default null)
returns interval
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _wait interval;
begin
    perform jobq_private.check_given('queues', num_nulls(due_in.queues));
    _wait := jobq_private.next_due(due_in.queues, due_in.except_kinds) - clock_timestamp();
    return case when _wait < '0' then '0' else _wait end;
end
$$;

grant execute on function jobq.due_in to jobq_worker, jobq_reader;

comment on function jobq.due_in is 'Returns the time until the next job of these queues is runnable, or null if none waits.';

-- Purpose: Ends the waiting of the session, so that it is no longer notified.
-- Invariant: releases every advisory lock of the session, so the session must be used only to
-- listen. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pg_advisory_unlock_all()
$$;

grant execute on function jobq.end_wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.end_wait is 'Ends the waiting of the session, so that it is no longer notified.';

-- Purpose: Ends a batch of attempts and claims the next jobs, in one call and one commit.
-- Invariant: attempts are ended before the claim, so that what they free can be claimed. A job
-- that another transaction has locked does not hold up the others: it comes back as held, and a
-- later call settles it. Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: maximum number of new jobs, 0 to 10000.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost if the attempt has lost its lease; held if another transaction has locked
-- the job: settle it again later. Attempts that succeeded have no row; a success that is sent
-- again is lost here, where complete_many() returns repeated.
-- Column attempt: for a claimed job the new attempt, else the settled one.
-- Example: select outcome, job_id, payload from jobq.exchange('{default}', 'worker-1', 10, array[:'running'::uuid], '{1}');
create or replace function jobq.exchange(
    queues text[],
    worker text,
    max_jobs integer,
    job_ids uuid[] default '{}',
    attempts integer[] default '{}',
    results jsonb default null,
    failures jsonb default null,
    max_limited integer default null,
    except_kinds text[] default null
)
returns table (
    outcome text,
    job_id uuid,
    attempt integer,
    kind text,
    payload jsonb,
    metadata jsonb,
    queue text,
    max_attempts integer,
    timeout interval,
    lease_expires_at timestamptz,
    run_at timestamptz,
    created_at timestamptz,
    idempotency_key text,
    lease interval,
    delivery_version integer,
    is_awaited boolean
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _results constant jsonb := jobq_private.check_results(
        exchange.job_ids, exchange.attempts, exchange.results
    );
    _moved bigint[] := '{}'::bigint[];
    _failures jobq_private.failure[];
    _locked uuid[];
begin
    if exchange.job_ids <> '{}' then
        _moved := coalesce(jobq_private.archive_jobs(
            exchange.job_ids, exchange.attempts, 'succeeded', _results, true
        ), '{}');
    end if;
    if exchange.failures is not null then
        _failures := jobq_private.read_failures(exchange.failures);
        _locked := jobq_private.lock_attempts(
            array(select f.job_id from unnest(_failures) as f),
            array(select f.attempt from unnest(_failures) as f)
        );
    end if;
    if cardinality(_moved) < cardinality(exchange.job_ids) or _failures is not null then
        for outcome, job_id, attempt in
            select
                coalesce(s.state, jobq_private.held_or_lost(u.job_id, u.attempt)),
                u.job_id, u.attempt
            from (
                select s.job_id, s.attempt, false as has_failed, s.n
                from unnest(exchange.job_ids, exchange.attempts)
                    with ordinality as s (job_id, attempt, n)
                where s.n <> all(_moved)
                union all
                select f.job_id, f.attempt, true, f.n
                from unnest(_failures) with ordinality
                    as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
            ) as u
            left join jobq_private.settle_failures(array(
                select t from unnest(_failures) as t where t.job_id = any(_locked)
            )) as s
                on u.has_failed and s.job_id = u.job_id and s.attempt = u.attempt
            order by u.has_failed, u.n
        loop
            return next;
        end loop;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(
        exchange.queues, exchange.worker, exchange.max_jobs, exchange.max_limited,
        exchange.except_kinds
    ) as c;
end
$$;

grant execute on function jobq.exchange to jobq_worker;

comment on function jobq.exchange is 'Ends a batch of attempts and claims the next jobs, in one call and one commit.';

-- Purpose: Ends an attempt as failed and returns the new state: retrying, dead or cancelled.
-- Invariant: retrying while attempts are left and the failure is retryable, else dead; a stale
-- attempt changes nothing. Without retry_in the kind's backoff decides. The error is redacted and
-- cut at 512 characters. Raises: 22004, 22023, JQ001, JQ003.
-- Returns: the new state: retrying, dead or cancelled.
-- Example: select jobq.fail(:'running', 1, 'status 503', 'HTTP_ERROR', retry_in => '30 s');
create or replace function jobq.fail(
    job_id uuid,
    attempt integer,
    error text,
    error_code text default 'ERROR',
    retryable boolean default true,
    retry_in interval default null,
    details jsonb default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    select s.state into _state
    from jobq_private.settle_failures(array[jobq_private.kept_failure(row(
        fail.job_id, fail.attempt, fail.error, fail.error_code, fail.retryable, fail.retry_in,
        fail.details
    ))]) as s;
    if not found then
        perform jobq_private.refuse_attempt(fail.job_id, fail.attempt);
    end if;
    return _state;
end
$$;

grant execute on function jobq.fail to jobq_worker;

comment on function jobq.fail is 'Ends an attempt as failed and returns the new state: retrying, dead or cancelled.';

-- Purpose: Ends many attempts as failed, and returns the new state of each, null if the lease was
-- lost.
-- Invariant: a stale attempt changes nothing. Raises: 22004, 22023.
-- Members failures: fail
-- Column state: the new state: retrying, dead or cancelled; null if the attempt has lost its
-- lease.
-- Example: select * from jobq.fail_many(jsonb_build_array(jsonb_build_object(
--     'job_id', :'running', 'attempt', 1, 'error', 'no such user', 'retryable', false)));
create or replace function jobq.fail_many(failures jsonb)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _failures constant jobq_private.failure[] :=
        jobq_private.read_failures(fail_many.failures);
begin
    return query
    select f.job_id, f.attempt, s.state
    from unnest(_failures) with ordinality
        as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
    left join jobq_private.settle_failures(_failures) as s
        on s.job_id = f.job_id and s.attempt = f.attempt
    order by f.n;
end
$$;

grant execute on function jobq.fail_many to jobq_worker;

comment on function jobq.fail_many is 'Ends many attempts as failed, and returns the new state of each, null if the lease was lost.';

-- Purpose: Extends the leases of a worker's jobs, and returns which are lost and which are to be
-- cancelled.
-- Invariant: a job that another transaction has locked does not hold up the others. No lease is
-- extended past claimed_at + timeout + lease. Raises: 22004, 22023.
-- Argument queues: the queues from which the worker claims, for explain() and jobq.worker; null
-- keeps them.
-- Argument except_kinds: kinds that the worker has seen and has no handler for, for explain()
-- and health(); null keeps them.
-- Argument release: release of the worker's program, 1 to 200 characters, shown in the console
-- and jobq.worker; null keeps it.
-- Argument stuck: how many slots of the worker are occupied by hanging handlers, for explain()
-- and health(); null keeps it.
-- Returns: a row for each job, in the order given.
-- Column outcome: extended; cancel_requested (also extended); held (another transaction has
-- locked the job: call again); or lost.
-- Example: select * from jobq.heartbeat('worker-1', array[:'running'::uuid], '{1}', '{default}');
create or replace function jobq.heartbeat(
    worker text, job_ids uuid[], attempts integer[], queues text[] default null,
    except_kinds text[] default null, release text default null, stuck integer default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _locked uuid[];
begin
    perform jobq_private.check_claim(
        worker => heartbeat.worker, except_kinds => heartbeat.except_kinds
    );
    perform jobq_private.check_argument(case
        when length(heartbeat.release) not between 1 and 200 or heartbeat.stuck < 0
        then 'release must have 1 to 200 characters, and stuck must not be negative'
    end);
    perform jobq_private.check_attempts(heartbeat.job_ids, heartbeat.attempts);
    insert into jobq_private.worker as w (worker, queues, except_kinds, release, stuck)
    values (
        heartbeat.worker, coalesce(heartbeat.queues, '{}'),
        coalesce(heartbeat.except_kinds, '{}'), heartbeat.release, coalesce(heartbeat.stuck, 0)
    )
    on conflict on constraint worker_pkey do update
    set
        seen_at = now(), queues = coalesce(heartbeat.queues, w.queues),
        except_kinds = coalesce(heartbeat.except_kinds, w.except_kinds),
        release = coalesce(heartbeat.release, w.release),
        stuck = coalesce(heartbeat.stuck, w.stuck);

    _locked := jobq_private.lock_attempts(heartbeat.job_ids, heartbeat.attempts);
    return query
    with extended as (
        update jobq_private.job as j
        set heartbeat_at = clock_timestamp()
        where j.job_id = any(_locked)
        returning j.job_id, j.attempt, j.cancel_requested_at
    )
    select f.job_id, f.attempt, case
        when e.job_id is null then jobq_private.held_or_lost(f.job_id, f.attempt)
        when e.cancel_requested_at is not null then 'cancel_requested'
        else 'extended'
    end
    from unnest(heartbeat.job_ids, heartbeat.attempts)
        with ordinality as f (job_id, attempt, n)
    left join extended as e on e.job_id = f.job_id and e.attempt = f.attempt
    order by f.n;
end
$$;

grant execute on function jobq.heartbeat to jobq_worker;

comment on function jobq.heartbeat is 'Extends the leases of a worker''s jobs, and returns which are lost and which are to be cancelled.';

-- Purpose: Adds a line to a job's log.
-- Invariant: append-only; a line is redacted and cut at 8192 characters. An attempt that has lost
-- its lease can log too. Raises: 22004, 22023, JQ001.
-- Example: select jobq.log(:'running', 1, 'INFO', 'half of it is done');
create or replace function jobq.log(
    job_id uuid, attempt integer, level text, message text
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given(
        'every argument of log', num_nulls(log.job_id, log.attempt, log.level, log.message)
    );
    perform jobq_private.check_argument(case
        when log.level not in ('DEBUG', 'INFO', 'WARN', 'ERROR')
        then 'level must be DEBUG, INFO, WARN or ERROR'
        when log.attempt not between 0 and (jobq.get_job(log.job_id)).attempt
        then 'attempt must be an attempt of the job'
    end);
    insert into jobq_private.job_log (job_id, attempt, level, message)
    values (log.job_id, log.attempt, log.level,
        jobq_private.redacted_text(left(log.message, 8192)));
end
$$;

grant execute on function jobq.log to jobq_worker;

comment on function jobq.log is 'Adds a line to a job''s log.';

-- Purpose: Recovers expired leases, ends expired jobs, repairs rows that bypassed the triggers,
-- releases jobs whose parents have ended, fires due schedules, deletes old jobs, keys, workers,
-- steps and events, keeps the history for charts, and creates and drops partitions. Safe for any
-- number of callers.
-- Invariant: any number of callers; one does the work, and the others return at once without rows.
-- A task is repeated while it comes back full, for at most half a second, and waits at most a
-- second for a lock. A task that fails is undone; health() reports it until it succeeds. The next
-- call begins with the others. Raises: nothing.
-- Returns: no rows if another session runs it.
-- Column task: recovered, expired, opened_keys, healed, resolved, ticked, pruned_jobs, pruned_keys,
-- pruned_limits, pruned_workflows, rolled_up, made_partitions or dropped_partitions.
-- Column affected: how many; null when the task has failed.
-- Column has_more: whether more work remains.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint, has_more boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
#variable_conflict use_column
declare
    _task jobq_private.maintenance_task;
    _at_most constant interval := least(
        interval '0.5 s', nullif(current_setting('statement_timeout')::interval, '0') / 20
    );
    _until timestamptz;
    _done bigint;
    _affected bigint;
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    for _task in
        select t.*
        from jobq_private.maintenance_task as t
        left join jobq_private.failed_task as f on f.task = t.task
        order by f.failed_at nulls first, t.position
    loop
        begin
            _affected := 0;
            _until := clock_timestamp() + _at_most;
            loop
                if _task.max_rows is null then
                    execute format('select jobq_private.%I()', _task.function) into _done;
                else
                    execute format('select jobq_private.%I($1)', _task.function)
                    into _done using _task.max_rows;
                end if;
                _affected := _affected + _done;
                exit when _done < _task.full_at or _task.ends_call or clock_timestamp() > _until;
            end loop;
            delete from jobq_private.failed_task as f where f.task = _task.task;
            return query values (_task.task, _affected, _done >= _task.full_at);
            -- Everybody waits for the locks of partitions until the commit.
            exit when _task.ends_call and _affected > 0;
        exception
            when query_canceled or others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task.task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task.task, null::bigint, false);
                exit when sqlstate = '57014';
        end;
    end loop;
end
$$;

grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is 'Recovers expired leases, ends expired jobs, repairs rows that bypassed the triggers, releases jobs whose parents have ended, fires due schedules, deletes old jobs, keys, workers, steps and events, keeps the history for charts, and creates and drops partitions. Safe for any number of callers.';

-- Purpose: Returns the time until maintain() has urgent work, or null if there is none.
-- Invariant: a duration by the database's clock; reads one entry of each index. Leases that begin
-- later and daily tasks do not count, so call maintain() from time to time as well.
-- Raises: nothing.
-- Returns: zero or less if something is due, null if nothing is planned.
-- Example: select jobq.maintain_in();
create or replace function jobq.maintain_in()
returns interval
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _due timestamptz := least(
        (select min(j.lease_expires_at) from jobq_private.job as j where j.state = 'running'),
        (
            select min(j.expires_at)
            from jobq_private.job as j
            where j.expires_at is not null and j.state in ('queued', 'retrying', 'blocked')
        )
    );
    _task_due timestamptz;
    _function text;
begin
    for _function in
        select t.due from jobq_private.maintenance_task as t where t.due is not null
    loop
        execute format('select jobq_private.%I()', _function) into _task_due;
        _due := least(_due, _task_due);
    end loop;
    -- Before PostgreSQL 17 no interval is infinite.
    return greatest(_due, case when _due is not null then '0001-01-02 UTC'::timestamptz end)
        - clock_timestamp();
end
$$;

grant execute on function jobq.maintain_in to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.maintain_in is 'Returns the time until maintain() has urgent work, or null if there is none.';

-- Purpose: Ends attempts whose lease has expired, and returns the new states of the jobs.
-- Invariant: oldest lease first, SKIP LOCKED, so any number of callers may run it. The attempt
-- counts; after max_expiries expiries a job is dead, so that a job which kills its workers stops.
-- Raises: 22004, 22023.
-- Argument max_jobs: maximum number, 1 to 100000.
-- Column state: the new state: retrying, dead or cancelled.
-- Example: select * from jobq_internal.recover();
create or replace function jobq_internal.recover(max_jobs integer default 1000)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _expired jobq_private.failure[];
begin
    perform jobq_private.check_count('max_jobs', recover.max_jobs, 1, 100000);
    select
        array_agg(row(
            e.job_id, e.attempt, 'the lease of worker ' || e.worker || ' expired',
            'LEASE_EXPIRED', true, null, null
        )::jobq_private.failure)
    into _expired
    from (
        select j.job_id, j.attempt, j.worker
        from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < _now
        order by j.lease_expires_at
        limit recover.max_jobs
        for update skip locked
    ) as e;

    if _expired is not null then
        return query select s.* from jobq_private.settle_failures(_expired, true) as s;
    end if;
end
$$;

grant execute on function jobq_internal.recover to jobq_worker, jobq_operator;

comment on function jobq_internal.recover is 'Ends attempts whose lease has expired, and returns the new states of the jobs.';

-- Purpose: Returns a leased job to its queue without counting the attempt, and returns the new
-- state.
-- Invariant: the attempt is not counted; a stale one changes nothing. Waits for a transaction that
-- has locked the job. Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: earliest start; null means as soon as possible.
-- Returns: the new state: queued, or cancelled if that was requested.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    perform from jobq_private.job as j where j.job_id = release.job_id for update;
    select r.state into _state
    from jobq.release_many(
        array[release.job_id], array[release.attempt], release.run_at
    ) as r;
    if _state is null then
        perform jobq_private.refuse_attempt(release.job_id, release.attempt);
    end if;
    return _state;
end
$$;

grant execute on function jobq.release to jobq_worker;

comment on function jobq.release is 'Returns a leased job to its queue without counting the attempt, and returns the new state.';

-- Purpose: Returns leased jobs to their queues without counting the attempts.
-- Invariant: the attempt is not counted; a job that was asked to be cancelled becomes cancelled. A
-- stale attempt changes nothing. A job that another transaction has locked does not hold up the
-- others. Raises: 22004, 22023.
-- Argument run_at: earliest start; null means as soon as possible.
-- Column state: queued, or cancelled if that was requested; held if another transaction has
-- locked the job: release it again later; null if the attempt has lost its lease.
-- Example: select * from jobq.release_many(array[:'running'::uuid], '{1}');
create or replace function jobq.release_many(
    job_ids uuid[], attempts integer[], run_at timestamptz default null
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _locked uuid[];
begin
    perform jobq_private.check_attempts(release_many.job_ids, release_many.attempts);
    perform jobq_private.check_argument(case
        when release_many.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'run_at must be in the years 1 to 9999'
    end);
    _locked := jobq_private.lock_attempts(release_many.job_ids, release_many.attempts);
    return query
    with released as (
        update jobq_private.job as j
        set
            state = case when j.cancel_requested_at is null then 'queued' else 'cancelled' end,
            run_at = coalesce(release_many.run_at, j.run_at)
        where j.job_id = any(_locked)
        returning j.job_id, j.attempt, j.state
    )
    select
        f.job_id, f.attempt,
        coalesce(r.state, nullif(jobq_private.held_or_lost(f.job_id, f.attempt), 'lost'))
    from unnest(release_many.job_ids, release_many.attempts)
        with ordinality as f (job_id, attempt, n)
    left join released as r on r.job_id = f.job_id and r.attempt = f.attempt
    order by f.n;
end
$$;

grant execute on function jobq.release_many to jobq_worker;

comment on function jobq.release_many is 'Returns leased jobs to their queues without counting the attempts.';

-- Purpose: Removes a stopping worker from the list of workers.
-- Invariant: leases do not depend on it. Raises: nothing.
-- Example: select jobq.retire_worker('worker-1');
create or replace function jobq.retire_worker(worker text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from jobq_private.worker as w where w.worker = retire_worker.worker
$$;

grant execute on function jobq.retire_worker to jobq_worker;

comment on function jobq.retire_worker is 'Removes a stopping worker from the list of workers.';

-- Purpose: Stores the progress of the running attempt.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Example: select jobq.set_progress(:'running', 1, '{"done": 50, "of": 100}');
create or replace function jobq.set_progress(job_id uuid, attempt integer, progress jsonb)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text[] := jobq_private.value_problem(
        set_progress.progress, 65536, 64
    );
begin
    perform jobq_private.check_problem(_problem[1], 'progress: ' || _problem[2]);
    update jobq_private.job as j
    set progress = set_progress.progress
    where j.job_id = set_progress.job_id
    and j.attempt = set_progress.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(set_progress.job_id, set_progress.attempt);
    end if;
end
$$;

grant execute on function jobq.set_progress to jobq_worker;

comment on function jobq.set_progress is 'Stores the progress of the running attempt.';

commit;
