-- Deploy jobq:limit to pg
-- Made by sql/snapshot.py from sql/limit/: edit that.
begin;
set local role jobq_owner;

-- Purpose: the greatest lane that a queue may have, by which an index of lanes is a range of its queue's.
-- Invariant: the range may hold lanes of another queue whose hash begins alike: who reads it
-- compares the queue too. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_ceiling(queue text)
returns uuid
language sql
immutable
parallel safe
security invoker
as $$
    select (
        pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(pg_catalog.convert_to(lane_ceiling.queue, 'UTF8')), 1, 6
        ), 'hex') || 'ffffffffffffffffffff'
    )::pg_catalog.uuid
$$;

revoke all on function jobq_private.lane_ceiling from public;

comment on function jobq_private.lane_ceiling is
'The greatest lane that a queue may have.';

-- Purpose: of each queue how many lanes have work, by priority, and how many of these are closed.
-- Invariant: lanes that no claim has opened yet count, as far as 50,000 calls tell. Raises: nothing.
create or replace function jobq_private.lane_counts()
returns table (queue text, lanes bigint, closed_lanes bigint)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select l.queue, count(*), count(*) filter (where l.state <> 'open')
    from (
        select l.queue, l.state
        from jobq_private.lane as l
        union all
        (
            select c.queue, 'open'
            from (
                select c.queue, c.lane_id, c.priority
                from jobq_private.lane_call as c
                limit 50000
            ) as c
            where c.priority is not null
            and not exists (
                select from jobq_private.lane as l
                where l.lane_id = c.lane_id and l.priority = c.priority
            )
            group by c.queue, c.lane_id, c.priority
        )
    ) as l
    group by l.queue
$$;

revoke all on function jobq_private.lane_counts from public;

comment on function jobq_private.lane_counts is
'Counts the lanes of each queue that have work, and those that are closed.';

-- Purpose: the lane of a job: its queue and concurrency key; null without a key.
-- Invariant: a hash that nobody can aim at another's, so that a lane is found without a
-- look, and an index on it is small. It begins with a hash of the queue, so that the lanes of one are
-- a range: from lane_floor() to lane_ceiling(). Strict, and no SET clause: without a key it is not even
-- called. Not inlined: a statement would set up each function within for every job.
-- Raises: nothing.
create or replace function jobq_private.lane_id(queue text, concurrency_key text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(queue, 'UTF8')), 1, 6)
        || pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.length(queue) || ':'
            || queue || concurrency_key, 'UTF8'
        )), 1, 10), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.lane_id from public;

comment on function jobq_private.lane_id is
'The lane of a queue and a concurrency key.';

-- Purpose: the lane of jobs without a key, of a kind that has limits.
-- Invariant: never that of a key, of which another text is hashed; of the queue's range, as lane_id(). Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.kind_lane_id(queue text, kind text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(queue, 'UTF8')), 1, 6)
        || pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            'kind ' || pg_catalog.length(queue)
            || ':' || queue
            || kind, 'UTF8'
        )), 1, 10), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.kind_lane_id from public;

comment on function jobq_private.kind_lane_id is
'The lane of a queue''s jobs without a key, of a kind that has limits.';

-- Purpose: the lane in which a new job waits: that of its key, else that of its kind where that
-- has limits; null for all others.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_of(
    queue text, concurrency_key text, kind text, is_limited boolean
)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select case
        when concurrency_key is not null then jobq_private.lane_id(queue, concurrency_key)
        when is_limited then jobq_private.kind_lane_id(queue, kind)
    end
$$;

revoke all on function jobq_private.lane_of from public;

comment on function jobq_private.lane_of is
'The lane in which a new job waits.';

-- Purpose: the gates of kinds for which lanes of a queue wait, how many more jobs each lets
-- start (null for any number), and when that changes by itself.
-- Invariant: one probe for each gate, and each is counted once. Raises: nothing.
create or replace function jobq_private.awaited_gates(queue text, now timestamptz)
returns table (gate_id uuid, room integer, open_at timestamptz)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    with recursive awaited as (
        (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id is not null
            order by l.gate_id
            limit 1
        )
        union all
        select n.gate_id
        from awaited as a
        cross join lateral (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id > a.gate_id
            order by l.gate_id
            limit 1
        ) as n
    )
    select a.gate_id, r.room, r.open_at
    from awaited as a
    left join jobq_private.gate as g on g.gate_id = a.gate_id
    cross join lateral jobq_private.gate_room(null, g.kind, awaited_gates.now) as r;
end
$$;

revoke all on function jobq_private.awaited_gates from public;

comment on function jobq_private.awaited_gates is
'The gates of kinds for which lanes of a queue wait, with how many jobs each lets start.';

-- Purpose: lanes wait for the gates of kinds: no claim looks at them until such a gate has room.
-- Invariant: the caller holds the lanes' locks. Whether a gate has room is counted anew by each
-- claim, so nobody must open it, but who adds a job that goes before the one that waits. Raises: nothing.
create or replace function jobq_private.bar_lanes(
    lanes uuid[], gates uuid[], queue text, priority integer
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.lane as l
    set
        state = 'full', gate_id = b.gate_id, key_gate_id = null,
        open_at = coalesce((
            select j.run_at
            from jobq_private.job as j
            where j.queue = bar_lanes.queue
            and j.lane_id = b.lane_id
            and j.priority = bar_lanes.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ), '-infinity')
    from unnest(bar_lanes.lanes, bar_lanes.gates) as b (lane_id, gate_id)
    where l.lane_id = b.lane_id
    and l.priority = bar_lanes.priority
    and l.queue = bar_lanes.queue
$$;

revoke all on function jobq_private.bar_lanes from public;

comment on function jobq_private.bar_lanes is
'Has lanes wait for the gates of kinds.';

-- Purpose: the gates that a job passes, and its lane, which let it not start now; no row when it may
-- start. Reason is held, rate_limited, ordered_behind, queue_busy, kind_busy or key_busy.
-- Invariant: a look, no promise, for who does not hold the gates. How many run is counted apart from
-- holds and rates, which have ended at infinity. Who needs at most one pays for no more.
-- Raises: nothing.
create or replace function jobq_private.barriers(
    job jobq_private.job, now timestamptz, at_most integer default null
)
returns table (reason text, scope text, open_at timestamptz)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select b.reason, b.scope, b.open_at
    from (
        select r.reason, r.scope, r.open_at
        from jobq_private.job_gates(job) as j
        left join jobq_private.gate as g on g.gate_id = j.gate_id
        cross join lateral jobq_private.token_at(
            g.passed_until, j.spacing, j.burst, barriers.now
        ) as t (open_at)
        cross join lateral (
            values
            ('held', concat_ws(': ', j.scope, g.hold_reason), g.held_until,
                g.held_until > barriers.now),
            ('rate_limited', j.scope, t.open_at, t.open_at is not null),
            ('ordered_behind', format('%s: job %s', j.scope, g.head_job_id), null,
                j.is_ordered and exists (
                    select from jobq_private.job as h
                    where h.job_id = g.head_job_id and h.job_id <> job.job_id
                    and (h.lane_id = job.lane_id or j.gate_id <> job.lane_id)
                ))
        ) as r (reason, scope, open_at, is_so)
        where r.is_so
        union all
        select 'queue_busy', 'queue ' || job.queue, null
        from jobq_private.gate_room(job.queue, null, 'infinity') as r
        where r.room = 0
        union all
        select 'kind_busy', 'kind ' || job.kind, null
        from jobq_private.gate_room(null, job.kind, 'infinity') as r
        where r.room = 0
        union all
        select
            'key_busy',
            format('kind %s, concurrency_key %s: %s', job.kind, job.concurrency_key,
                r.max_running),
            null
        from jobq_private.key_rule(job.kind) as r
        where r.max_running is not null and job.concurrency_key is not null
        and (
            select k.room
            from jobq_private.key_room(job.kind, job.concurrency_key, 'infinity') as k
        ) = 0
        union all
        select
            'key_busy',
            format('queue %s, concurrency_key %s: %s', job.queue, job.concurrency_key,
                r.max_running),
            null
        from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        cross join lateral jobq_private.free_places(
            job.queue, job.lane_id, r.max_running, 1
        ) as p (places)
        where p.places = '{}'
    ) as b
    limit barriers.at_most;
end
$$;

revoke all on function jobq_private.barriers from public;

comment on function jobq_private.barriers is
'What lets a job not start now: all of it, or as much as is wanted.';

-- Purpose: after jobs of these queues, lanes (null for none), kinds and keys have ended: have the lanes
-- opened that were full, or may have waited for one of them in an order, and wake the queues in
-- which others may start now.
-- Invariant: the protocol of call_lane(). Looks for closed lanes alone, of which there are none as a rule.
-- Raises: nothing.
create or replace function jobq_private.call_full_lanes(
    queues text[], lanes uuid[], kinds text[], keys text[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _is_fresh constant boolean := current_setting('transaction_isolation') = 'read committed';
    _seen boolean[];
    _called text[];
begin
    _seen := array(
        select u.lane_id is null or _is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.lane_slot(u.lane_id)
        )
        from unnest(call_full_lanes.lanes) as u (lane_id)
    );
    if false = any (_seen) or exists (
        select from jobq_private.lane as l
        where l.lane_id = any (call_full_lanes.lanes) and l.state <> 'open'
    ) then
        with called as (
            insert into jobq_private.lane_call as c (queue, lane_id)
            select distinct u.queue, u.lane_id
            from unnest(call_full_lanes.queues, call_full_lanes.lanes, _seen)
                as u (queue, lane_id, is_seen)
            where not u.is_seen
            or exists (
                select from jobq_private.lane as l
                where l.lane_id = u.lane_id
                and l.state <> 'open'
                and (
                    l.state = 'full'
                    or l.state = 'later' and (
                        l.key_gate_id is not null
                        or exists (
                            select from jobq_private.gate as g
                            where g.gate_id = l.lane_id and g.head_job_id is not null
                        )
                    )
                )
            )
            returning c.queue
        )
        select array_agg(c.queue) into _called from called as c;
    end if;
    if exists (select from jobq_private.kind_gate as k) then
        _called := _called || jobq_private.call_key_lanes(kinds, keys)
            || jobq_private.waiting_queues(queues, kinds);
    end if;
    _called := _called || array(
        select q.queue
        from jobq_private.queue as q
        where q.queue = any (call_full_lanes.queues) and q.max_running is not null
    );
    if _called <> '{}' then
        perform jobq_private.wake(array(select distinct w.queue from unnest(_called) as w (queue)));
    end if;
end
$$;

revoke all on function jobq_private.call_full_lanes from public;

comment on function jobq_private.call_full_lanes is
'Has lanes opened, and queues woken, that jobs have left.';

-- Purpose: after jobs of these kinds and keys have ended: have the lanes of any queue opened that wait
-- because of their kinds' limits for each key; returns their queues.
-- Invariant: the protocol of call_lane(), by the gate of the key. Who cannot have its lock calls all
-- lanes of the key. Raises: nothing.
create or replace function jobq_private.call_key_lanes(kinds text[], keys text[])
returns text[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _gates uuid[];
    _keys text[];
    _queues text[];
begin
    select array_agg(e.gate_id), array_agg(e.concurrency_key) filter (where not e.is_mine)
    into _gates, _keys
    from (
        select
            u.concurrency_key, g.gate_id,
            current_setting('transaction_isolation') = 'read committed'
            and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(g.gate_id))
                as is_mine
        from (
            select distinct e.kind, e.concurrency_key
            from unnest(call_key_lanes.kinds, call_key_lanes.keys)
                as e (kind, concurrency_key)
            where e.concurrency_key is not null
        ) as u
        join jobq_private.kind as k on k.kind = u.kind
        cross join lateral (
            select jobq_private.key_gate_id(u.kind, u.concurrency_key) as gate_id
        ) as g
        where num_nonnulls(k.key_max_running, k.ordered) > 0
        offset 0
    ) as e;
    if _gates is null then
        return null;
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select l.queue, l.lane_id
        from jobq_private.lane as l
        where l.key_gate_id = any (_gates) and l.state = 'full'
        union
        select l.queue, l.lane_id
        from jobq_private.lane as l
        where _keys is not null and l.concurrency_key = any (_keys)
        union
        select w.queue, w.lane_id
        from jobq_private.lane_call as w
        where _keys is not null and w.concurrency_key = any (_keys)
        returning c.queue
    )
    select array_agg(distinct c.queue) into _queues from called as c;
    return _queues;
end
$$;

revoke all on function jobq_private.call_key_lanes from public;

comment on function jobq_private.call_key_lanes is
'Has lanes opened that wait because of their kinds'' limits for each key.';

-- Purpose: after a job has come into a lane: have the lane opened, unless it is open, full (so that
-- the end of a job opens it), or closed until the job is due; open_at says which.
-- Invariant: who closes a lane holds its lock exclusively until the commit, and looks again
-- under it; who adds work or room holds it shared, and then looks whether the lane is closed.
-- So one of the two always sees the other, and neither waits: who cannot have the lock calls
-- in any case. A repeatable snapshot is too old to look with. Raises: nothing.
create or replace function jobq_private.call_lane(
    lane_id uuid, queue text, concurrency_key text, priority integer, run_at timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
begin
    if current_setting('transaction_isolation') = 'read committed'
        and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(lane_id))
    then
        perform from jobq_private.lane as l
        where l.lane_id = call_lane.lane_id
        and l.priority = call_lane.priority
        and l.open_at <= call_lane.run_at;
        if found then
            return;
        end if;
    end if;
    insert into jobq_private.lane_call (queue, lane_id, concurrency_key, priority)
    values (
        call_lane.queue, call_lane.lane_id, call_lane.concurrency_key, call_lane.priority
    );
end
$$;

revoke all on function jobq_private.call_lane from public;

comment on function jobq_private.call_lane is
'Has a lane opened that a job has come into.';

-- Purpose: call_lane() for each lane of these new jobs.
-- Invariant: once for a lane and priority, with the time of its earliest job. Raises: nothing.
create or replace function jobq_private.call_lanes(job_ids uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select jobq_private.call_lane(
        l.lane_id, l.queue, l.concurrency_key, l.priority, l.run_at
    )
    from (
        select j.lane_id, j.queue, j.concurrency_key, j.priority, min(j.run_at) as run_at
        from jobq_private.job as j
        where j.job_id = any (call_lanes.job_ids) and j.lane_id is not null
        group by j.lane_id, j.queue, j.concurrency_key, j.priority
        offset 0
    ) as l
$$;

revoke all on function jobq_private.call_lanes from public;

comment on function jobq_private.call_lanes is
'Has the lanes opened that new jobs have come into.';

-- Purpose: before these jobs move to a queue, or (null) are deleted or go behind others, or when they
-- have started: have the lanes opened in which others wait for one of them, as in an ordered lane, or
-- where its kind may start no more.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.call_left_lanes(job_ids uuid[], queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind),
        array_agg(j.concurrency_key)
    )
    from jobq_private.job as j
    where j.job_id = any (call_left_lanes.job_ids)
    and j.lane_id is not null
    and j.queue is distinct from call_left_lanes.queue
    having count(*) > 0
$$;

revoke all on function jobq_private.call_left_lanes from public;

comment on function jobq_private.call_left_lanes is
'Has lanes opened that waiting jobs are about to leave.';

-- Purpose: these jobs have started: what the rates of their keys and kinds have let pass, and
-- which job is the last of an ordered lane. Where one was tried again before which no other of its
-- lane might start, the lane is opened.
-- Invariant: the caller holds the gates. Raises: nothing.
create or replace function jobq_private.charge_gates(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _heads uuid[];
begin
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, r.spacing, r.burst, s.jobs, clock_timestamp()
        ),
        head_job_id = case when r.is_ordered then s.last end
    from (
        select
            j.lane_id, j.queue, j.concurrency_key, count(*) as jobs,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids) and j.concurrency_key is not null
        group by j.lane_id, j.queue, j.concurrency_key
        offset 0
    ) as s
    cross join lateral jobq_private.lane_rule(s.queue, s.concurrency_key) as r
    where g.gate_id = s.lane_id and (r.spacing is not null or r.is_ordered);

    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(k.rate_limit, k.rate_period),
        coalesce(k.rate_burst, 1), s.jobs, clock_timestamp()
    )
    from (
        select j.kind, count(*) as jobs
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids)
        group by j.kind
        offset 0
    ) as s
    join jobq_private.kind as k on k.kind = s.kind
    where g.kind = s.kind and g.queue is null;

    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, s.spacing, s.burst, s.jobs, clock_timestamp()
        ),
        head_job_id = case when s.is_ordered then s.last end
    from (
        select
            j.kind, j.concurrency_key, r.spacing, r.burst, r.is_ordered, count(*) as jobs,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        cross join lateral jobq_private.key_rule(j.kind) as r
        where j.job_id = any (charge_gates.job_ids) and j.concurrency_key is not null
        group by j.kind, j.concurrency_key, r.spacing, r.burst, r.is_ordered
        offset 0
    ) as s
    where g.gate_id = jobq_private.key_gate_id(s.kind, s.concurrency_key);

    if exists (select from jobq_private.kind as k where k.ordered) then
        _heads := array(
            select j.job_id
            from jobq_private.job as j
            join jobq_private.kind as k on k.kind = j.kind and k.ordered
            where j.job_id = any (charge_gates.job_ids)
            and j.attempt > 1 and j.concurrency_key is not null
        );
        if _heads <> '{}' then
            perform jobq_private.call_left_lanes(_heads, null);
        end if;
    end if;
end
$$;

revoke all on function jobq_private.charge_gates from public;

comment on function jobq_private.charge_gates is
'What the rates of keys and kinds have let pass by the start of these jobs.';

-- Purpose: the gate of a whole queue, or of a whole kind; that of a lane is its lane_id.
-- Invariant: never a lane's, since neither queues nor keys are empty. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.gate_id(queue text, kind text)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select jobq_private.lane_id(coalesce(queue, ''), coalesce(kind, ''))
$$;

revoke all on function jobq_private.gate_id from public;

comment on function jobq_private.gate_id is
'The gate of a whole queue, or of a whole kind.';

-- Purpose: the gate of a key of a kind, in all queues; with an empty key, what stands in kind_gate
-- for a kind whose keys have limits.
-- Invariant: never that of a lane, whose hash begins otherwise. Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.key_gate_id(kind text, concurrency_key text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            'key ' || pg_catalog.length(kind)
            || ':' || kind
            || concurrency_key, 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.key_gate_id from public;

comment on function jobq_private.key_gate_id is
'The gate of a key of a kind, in all queues.';

-- Purpose: the microseconds from one start to the next that a rate asks for; null without a
-- rate.
-- Invariant: rounded up, so that no rate is exceeded; at least one. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.spacing(rate_limit integer, rate_period interval)
returns bigint
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.ceil(
        extract(epoch from coalesce(rate_period, interval '1 s')) * 1000000 / rate_limit
    )::bigint
$$;

revoke all on function jobq_private.spacing from public;

comment on function jobq_private.spacing is
'The microseconds from one start to the next that a rate asks for.';

-- Purpose: what holds for a lane: the key's own limits, else what the queue says for each key.
-- Invariant: one row; all null for jobs without a key. An ordered lane runs one job at a time.
-- No SET clause, so that it is inlined, and offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_rule(queue text, concurrency_key text)
returns setof jobq_private.lane_rule
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        case
            when lane_rule.concurrency_key is null then null
            when q.ordered then 1
            else coalesce(l.max_running, q.key_max_running)
        end,
        case
            when lane_rule.concurrency_key is null then null
            when l.rate_limit is not null
            then jobq_private.spacing(l.rate_limit, l.rate_period)
            else jobq_private.spacing(q.key_rate_limit, q.key_rate_period)
        end,
        coalesce(
            case when l.rate_limit is not null then l.rate_burst else q.key_rate_burst end, 1
        ),
        coalesce(q.ordered, false) and lane_rule.concurrency_key is not null,
        coalesce(q.on_dead = 'hold', false)
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = lane_rule.queue
    left join jobq_private.key_limit as l
        on l.queue = lane_rule.queue and l.concurrency_key = lane_rule.concurrency_key
    offset 0
$$;

revoke all on function jobq_private.lane_rule from public;

comment on function jobq_private.lane_rule is
'What holds for a lane: the key''s own limits, else what its queue says for each key.';

-- Purpose: what a kind says for each of its keys, in all queues.
-- Invariant: no row for kinds that say nothing. Those that are ordered run one job of a key at a time. No
-- SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.key_rule(kind text)
returns setof jobq_private.lane_rule
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        case when k.ordered then 1 else k.key_max_running end,
        jobq_private.spacing(k.key_rate_limit, k.key_rate_period),
        coalesce(k.key_rate_burst, 1),
        coalesce(k.ordered, false),
        coalesce(k.on_dead = 'hold', false)
    from jobq_private.kind as k
    where k.kind = key_rule.kind
    and pg_catalog.num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered) > 0
$$;

revoke all on function jobq_private.key_rule from public;

comment on function jobq_private.key_rule is
'What a kind says for each of its keys, in all queues.';

-- Purpose: the gates that a job passes when it starts: of its lane, of its whole queue and kind and of
-- its key of the kind where these have limits, and where it has no key that of its kind in its queue.
-- Invariant: a row for each; spacing is null without a rate. Raises: nothing.
create or replace function jobq_private.job_gates(job jobq_private.job)
returns table (
    gate_id uuid, scope text, kind text, spacing bigint, burst integer, is_ordered boolean
)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.gate_id(q.queue, null), 'queue ' || q.queue, null,
        jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1), false
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit) > 0
    union all
    select g.gate_id, 'kind ' || g.kind, g.kind,
        jobq_private.spacing(k.rate_limit, k.rate_period), coalesce(k.rate_burst, 1), false
    from jobq_private.gate as g
    left join jobq_private.kind as k on k.kind = g.kind
    where g.kind = job.kind and g.queue is null
    union all
    select job.lane_id, format('queue %s, concurrency_key %s', job.queue, job.concurrency_key),
        null, r.spacing, r.burst, r.is_ordered
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
    where job.concurrency_key is not null
    union all
    select jobq_private.key_gate_id(job.kind, job.concurrency_key),
        format('kind %s, concurrency_key %s', job.kind, job.concurrency_key),
        null, r.spacing, r.burst, r.is_ordered
    from jobq_private.key_rule(job.kind) as r
    where job.concurrency_key is not null
    union all
    select g.gate_id, format('kind %s in queue %s', g.kind, g.queue), g.kind, null, 1, false
    from jobq_private.gate as g
    where g.kind = job.kind and g.queue = job.queue and job.concurrency_key is null
$$;

revoke all on function jobq_private.job_gates from public;

comment on function jobq_private.job_gates is
'The gates that a job passes when it starts.';

-- Purpose: until when a rate is spent, once so many jobs have started.
-- Invariant: counted from the clock after the starts, so that none lies closer to the next
-- than its rate says. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.spent(
    passed_until timestamptz, spacing bigint, burst integer, jobs bigint, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case when spacing is null then passed_until else
        greatest(now, least(passed_until, now + burst * spacing * interval '1 us'))
        + jobs * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.spent from public;

comment on function jobq_private.spent is
'Until when a rate is spent, once so many jobs have started.';

-- Purpose: a job has started by no claim of a batch: the gates that it has passed know of it,
-- and a lane in which no other might start before it is opened.
-- Invariant: the caller holds them since find_place(), and has stamped the start. All are written
-- to, so that a repeatable snapshot that has not seen the start fails at them. Raises: nothing.
create or replace function jobq_private.charge_job(job jobq_private.job)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, j.spacing, j.burst, 1, clock_timestamp()
        ),
        head_job_id = case when j.is_ordered then job.job_id end
    from jobq_private.job_gates(job) as j
    where g.gate_id = j.gate_id;

    select jobq_private.call_full_lanes(
        array[job.queue], array[job.lane_id], array[job.kind], array[job.concurrency_key]
    )
    where job.attempt > 0 and job.lane_id is not null
    and exists (
        select from jobq_private.kind as k where k.kind = job.kind and k.ordered
    )
$$;

revoke all on function jobq_private.charge_job from public;

comment on function jobq_private.charge_job is
'Has the gates that a job has passed know of its start.';

-- Purpose: so many jobs of a queue that has limits as a whole have started.
-- Invariant: the caller holds the queue's gate. It is written to even without a rate, so that a
-- repeatable snapshot that has not seen these starts fails at the gate. Raises: nothing.
create or replace function jobq_private.charge_queue(queue text, jobs integer)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(q.rate_limit, q.rate_period),
        coalesce(q.rate_burst, 1), charge_queue.jobs, clock_timestamp()
    )
    from jobq_private.queue as q
    where q.queue = charge_queue.queue
    and g.gate_id = jobq_private.gate_id(q.queue, null)
    and charge_queue.jobs > 0
$$;

revoke all on function jobq_private.charge_queue from public;

comment on function jobq_private.charge_queue is
'So many jobs of a queue that has limits as a whole have started.';

-- Purpose: refuse a job whose kind takes its concurrency key from the payload, where what
-- stands there is no key.
-- Invariant: a path that names nothing, or null, means no key. Raises: JQ006.
create or replace function jobq_private.check_concurrency_key(
    job jobq_private.new_job, path text[]
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.concurrency_key is not null then
        return;
    elsif jsonb_typeof(job.payload #> path) in ('object', 'array') then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s is an %s, and no concurrency key', job.ordinal,
            '/' || array_to_string(path, '/'), jsonb_typeof(job.payload #> path)
        ));
    elsif octet_length(job.payload #>> path) not between 1 and 1024 then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s: a concurrency key has 1 to 1024 bytes', job.ordinal,
            '/' || array_to_string(path, '/')
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_key from public;

comment on function jobq_private.check_concurrency_key is
'Refuses a payload that has no concurrency key where its kind looks for it.';

-- Purpose: check_concurrency_key() for a batch of new jobs.
-- Invariant: looks at the jobs only where a kind has a path. Raises: JQ006.
create or replace function jobq_private.check_concurrency_keys(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.kind as k where k.concurrency_key is not null) then
        perform jobq_private.check_concurrency_key(j, k.concurrency_key)
        from unnest(check_concurrency_keys.jobs) as j
        join jobq_private.kind as k on k.kind = j.kind
        where k.concurrency_key is not null;
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_keys from public;

comment on function jobq_private.check_concurrency_keys is
'Refuses payloads that have no concurrency key where their kinds look for it.';

-- Purpose: what holds for each of these lanes now: how many jobs may run, how many may start by its
-- rate, zero while it is held, and which waits again, so that no other may start: the last of an ordered
-- lane, or that of an ordered kind (heads).
-- Invariant: exact for who holds the gates of those with a rate or an order. Raises: nothing.
create or replace function jobq_private.lane_bounds(
    lanes jobq_private.lane[], heads uuid[], now timestamptz
)
returns jobq_private.lane_bounds
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _bounds jobq_private.lane_bounds;
begin
    select
        array_agg(r.max_running order by l.ordinality),
        array_agg(
            case
                when g.held_until > lane_bounds.now then 0
                else jobq_private.tokens(
                    g.passed_until, r.spacing, r.burst, lane_bounds.now
                )
            end
            order by l.ordinality
        ),
        array_agg(h.job_id order by l.ordinality)
    into _bounds
    from unnest(lane_bounds.lanes) with ordinality as l
    cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
    left join jobq_private.gate as g on g.gate_id = l.lane_id
    left join jobq_private.job as h
        on h.job_id = case
            when r.is_ordered then g.head_job_id else lane_bounds.heads[l.ordinality]
        end
        and h.lane_id = l.lane_id;
    return _bounds;
end
$$;

revoke all on function jobq_private.lane_bounds from public;

comment on function jobq_private.lane_bounds is
'What holds for each of these lanes now.';

-- Purpose: lease runnable jobs of a queue's lanes to a worker: those of a higher priority
-- than the given one, at which a claim finds jobs without a lane, and half of what it wants
-- at that priority; all where there are none (null). Only of these kinds, and none of those
-- excepted, null for any: where another goes first in a lane, that is left.
-- Invariant: bounded in lanes; SKIP LOCKED; what a lane may run is counted after its lock was
-- had, under the lock of the queue's limits that look_at() has taken. A lane in which nothing
-- was found is closed, and no other is written to. The time of a start is read after what runs
-- was counted, so that no end of what made room is later. Raises: nothing.
create or replace function jobq_private.claim_lanes(
    queue text, worker text, max_jobs integer, priority integer, is_limited boolean,
    has_gates boolean, kinds text[] default null, except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _needs_places constant boolean := coalesce(is_limited, false) or has_gates;
    _now constant timestamptz := clock_timestamp();
    _rules record;
    _bounds jobq_private.lane_bounds;
    _left integer := max_jobs;
    _level integer := 32768;
    _width integer;
    _lanes jobq_private.lane[];
    _jobs tid[];
    _places smallint[];
    _idle jobq_private.lane[];
    _others integer;
    _heads uuid[];
    _closed bigint;
    _full jobq_private.barred_lane[];
    _barred uuid[];
    _gates uuid[];
    _ids uuid[];
    _started_at timestamptz;
begin
    select r.* into _rules from jobq_private.lane_rules(queue, _now) as r;
    perform jobq_private.open_lanes(queue, _now, has_gates);
    loop
        _level := jobq_private.next_level(queue, _level);
        exit when _level is null or _level < claim_lanes.priority;
        if _level = claim_lanes.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _lanes := jobq_private.pick_lanes(queue, _level, _width);
            exit when _lanes = '{}';
            _lanes := jobq_private.whole_lanes(_lanes, queue, _level);
            if _rules.has_rules and _lanes <> '{}' then
                _lanes := jobq_private.hold_ruled_lanes(_lanes);
            end if;
            continue when _lanes = '{}';
            if has_gates then
                _heads := jobq_private.lane_heads(_lanes);
            end if;
            if _heads is not null or not _rules.are_alike then
                _bounds := jobq_private.lane_bounds(_lanes, _heads, clock_timestamp());
            end if;
            select b.jobs, b.places, b.idle into _jobs, _places, _idle
            from jobq_private.take_from_lanes(
                _lanes, _rules.max_running, _bounds, clock_timestamp(), _left, _needs_places,
                not has_gates and num_nonnulls(claim_lanes.kinds, claim_lanes.except_kinds) = 0
            ) as b;
            _others := 0;
            if num_nonnulls(claim_lanes.kinds, claim_lanes.except_kinds) > 0 and _jobs <> '{}'
            then
                _others := cardinality(_jobs);
                select coalesce(array_agg(u.job order by u.n), '{}'),
                    array_agg(u.place order by u.n), _others - count(*)
                into _jobs, _places, _others
                from unnest(_jobs, _places) with ordinality as u (job, place, n)
                join jobq_private.job as j on j.ctid = u.job
                where (claim_lanes.kinds is null or j.kind = any (claim_lanes.kinds))
                and (claim_lanes.except_kinds is null or j.kind <> all (claim_lanes.except_kinds));
            end if;
            _closed := 0;
            _full := null;
            if has_gates and _jobs <> '{}' then
                select p.jobs, p.places, p.barred into _jobs, _places, _full
                from jobq_private.pass_keys(queue, clock_timestamp(), _jobs, _places) as p;
                select p.jobs, p.places, p.barred, p.gates
                into _jobs, _places, _barred, _gates
                from jobq_private.pass_kinds(clock_timestamp(), _jobs, _places) as p;
                _closed := cardinality(_barred);
                if _barred <> '{}' then
                    perform jobq_private.bar_lanes(_barred, _gates, queue, _level);
                end if;
            end if;
            if has_gates or _rules.has_rules then
                _ids := array(
                    select j.job_id from jobq_private.job as j where j.ctid = any (_jobs)
                );
            end if;
            _started_at := clock_timestamp();
            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim_lanes.worker,
                    previous_state = j.state, attempt = j.attempt + 1,
                    lane = null,
                    claimed_at = _started_at, lease_expires_at = _started_at + j.lease,
                    place = t.place
                from unnest(_jobs, _places) as t (job, place)
                where j.ctid = t.job
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
                    j.idempotency_key, j.lease, j.delivery_version,
                    j.is_awaited or j.place is not null or j.batch_id is not null
            )
            select t.* from taken as t
            where t.lease_expires_at is not null
            order by t.run_at, t.job_id;
            _left := _left - cardinality(_jobs);
            _width := least(100, case when _jobs = '{}' then _width * 2 else _left end);
            if _ids <> '{}' then
                perform jobq_private.charge_gates(_ids);
            end if;
            if _full is not null then
                _closed := _closed + jobq_private.close_key_lanes(queue, _level, _full);
            end if;
            exit when jobq_private.close_lanes(_idle, _rules.has_rules, has_gates)
                + _closed = 0
                and _jobs = '{}' and 2 * _others < _width;
        end loop;
        exit when _left = 0;
    end loop;
end
$$;

revoke all on function jobq_private.claim_lanes from public;

comment on function jobq_private.claim_lanes is
'Leases runnable jobs of a queue''s lanes to a worker, in fair turns.';

-- Purpose: close lanes of a queue whose next jobs are of kinds that may start no more of their keys;
-- returns how many are closed now, or may start one after all.
-- Invariant: as close_lanes(), by the locks of the lane and of the key's gate: the end of a job may make
-- room in other queues too. open_at says of a full one from when the job waits, so that
-- who adds one that goes before it calls. Raises: nothing.
create or replace function jobq_private.close_key_lanes(
    queue text, priority integer, lanes jobq_private.barred_lane[]
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    _mine := array(
        select b.lane_id
        from unnest(close_key_lanes.lanes) as b
        where pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(b.lane_id))
        and pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(
            jobq_private.key_gate_id(b.kind, b.concurrency_key)
        ))
    );
    perform jobq_private.pull_back(
        jobq_private.key_gate_id(b.kind, b.concurrency_key), r.spacing, r.burst, clock_timestamp()
    )
    from unnest(close_key_lanes.lanes) as b
    cross join lateral jobq_private.key_rule(b.kind) as r
    where r.spacing is not null;
    with found as materialized (
        select
            b.lane_id, b.lane_id = any (_mine) as is_mine,
            jobq_private.key_gate_id(b.kind, b.concurrency_key) as gate_id,
            case when r.room = 0 then r.open_at when h.queue = close_key_lanes.queue then h.run_at end
                as open_at,
            case when r.room = 0 then r.open_at is null else h.queue <> close_key_lanes.queue end
                as is_full,
            (
                select j.run_at
                from jobq_private.job as j
                where j.queue = close_key_lanes.queue
                and j.lane_id = b.lane_id
                and j.priority = close_key_lanes.priority
                and j.state in ('queued', 'retrying')
                order by j.run_at
                limit 1
            ) as run_at
        from unnest(close_key_lanes.lanes) as b
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.key_room(b.kind, b.concurrency_key, n.now) as r
        left join jobq_private.job as h on h.job_id = r.head_job_id
        where r.room = 0 or h.queue <> close_key_lanes.queue or h.run_at > n.now
    )
    update jobq_private.lane as l
    set
        state = case when f.is_mine and f.is_full then 'full' else 'later' end,
        open_at = case
            when not f.is_mine then clock_timestamp() + interval '5 ms'
            when f.is_full then coalesce(f.run_at, '-infinity')
            else f.open_at
        end,
        gate_id = null,
        key_gate_id = f.gate_id
    from found as f
    where l.lane_id = f.lane_id
    and l.priority = close_key_lanes.priority
    and l.queue = close_key_lanes.queue;
    return cardinality(close_key_lanes.lanes);
end
$$;

revoke all on function jobq_private.close_key_lanes from public;

comment on function jobq_private.close_key_lanes is
'Closes lanes whose next jobs are of kinds that may start no more of their keys.';

-- Purpose: close lanes in which a claim has found nothing: as full, until their next job is due, or
-- for good; returns how many were closed.
-- Invariant: the caller holds the rows' locks, and those of their gates. What these say of a rate
-- is pulled back, as pull_back() does; where queue and keys have none, empty lanes go first, by a
-- statement that looks at nothing else. The protocol of call_lane(): only under the exclusive lock,
-- and after another look under it; while somebody holds the lock who may be about to add work or
-- room, the lane is only put off. A repeatable snapshot closes none. Hot: its caller pins the
-- search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.close_lanes(
    lanes jobq_private.lane[], has_rules boolean, has_gates boolean
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _heads uuid[];
    _gone uuid[] := '{}'::uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    if close_lanes.lanes = '{}' then
        return 0;
    end if;
    _mine := array(
        select l.lane_id
        from unnest(close_lanes.lanes) as l
        where pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(l.lane_id))
    );
    if not has_rules then
        with gone as (
            delete from jobq_private.lane as l
            using unnest(close_lanes.lanes) as e
            where l.lane_id = e.lane_id and l.priority = e.priority
            and e.lane_id = any (_mine)
            and (
                select j.job_id
                from jobq_private.job as j
                where j.lane_id = e.lane_id
                and j.priority = e.priority
                and j.state in ('queued', 'retrying')
                limit 1
            ) is null
            returning l.lane_id
        )
        select coalesce(array_agg(g.lane_id), '{}') into _gone from gone as g;
        if cardinality(_gone) = cardinality(lanes) then
            return cardinality(_gone);
        end if;
        close_lanes.lanes := array(
            select l
            from unnest(close_lanes.lanes) as l
            where l.lane_id <> all (_gone)
        );
    end if;
    if has_gates then
        _heads := jobq_private.lane_heads(lanes);
    end if;
    with found as materialized (
        select
            l.lane_id, l.priority, t.open_at,
            case
                when g.passed_until > n.now + r.burst * r.spacing * interval '1 us'
                then n.now + r.burst * r.spacing * interval '1 us'
            end as spent_until,
            jobq_private.key_gate_id(h.kind, l.concurrency_key) as key_gate_id,
            case
                when l.lane_id <> all (_mine) then 'busy'
                when w.run_at is null then 'empty'
                when t.open_at > n.now then 'later'
                when p.places = '{}' or h.priority <> l.priority then 'full'
                else 'busy'
            end as state
        from unnest(close_lanes.lanes) with ordinality as l
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        cross join lateral jobq_private.free_places(l.queue, l.lane_id, r.max_running, 1)
            as p (places)
        left join jobq_private.gate as g on g.gate_id = l.lane_id
        left join jobq_private.job as h
            on h.job_id = case
                when r.is_ordered then g.head_job_id else _heads[l.ordinality]
            end
            and h.lane_id = l.lane_id and h.state <> 'running'
        left join lateral (
            select j.run_at
            from jobq_private.job as j
            where j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ) as w on true
        cross join lateral (
            select greatest(
                case when h.priority = l.priority then h.run_at else w.run_at end,
                g.held_until,
                jobq_private.token_at(g.passed_until, r.spacing, r.burst, n.now)
            )
        ) as t (open_at)
    ),
    pulled_back as (
        update jobq_private.gate as g
        set passed_until = f.spent_until
        from found as f
        where f.spent_until is not null and g.gate_id = f.lane_id
    ),
    gone as (
        delete from jobq_private.lane as l
        using found as f
        where f.state = 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    ),
    closed as (
        update jobq_private.lane as l
        set
            state = case f.state when 'full' then 'full' else 'later' end,
            open_at = case f.state
                when 'busy' then clock_timestamp() + interval '5 ms'
                when 'full' then '-infinity'
                else f.open_at
            end,
            key_gate_id = f.key_gate_id
        from found as f
        where f.state <> 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    )
    select (select count(*) from gone as g) + (select count(*) from closed as c)
    into _closed;
    return cardinality(_gone) + _closed;
end
$$;

revoke all on function jobq_private.close_lanes from public;

comment on function jobq_private.close_lanes is
'Closes lanes in which a claim has found nothing.';

-- Purpose: of jobs that a claim has locked outside lanes, those whose kinds have no gate; the
-- others go into the lanes of their kinds.
-- Invariant: only what was made before its kind got a gate comes here. Raises: nothing.
create or replace function jobq_private.divert_jobs(jobs tid[])
returns tid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gated tid[];
    _moved uuid[];
begin
    _gated := array(
        select j.ctid
        from jobq_private.job as j
        where j.ctid = any (divert_jobs.jobs)
        and exists (
            select from jobq_private.gate as g
            where g.kind = j.kind and (g.queue is null or g.queue = j.queue)
        )
    );
    if _gated = '{}' then
        return jobs;
    end if;
    with moved as (
        update jobq_private.job as j
        set lane_id = jobq_private.kind_lane_id(j.queue, j.kind)
        where j.ctid = any (_gated)
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.call_lanes(_moved);
    return array(
        select u.job from unnest(divert_jobs.jobs) as u (job) where u.job <> all (_gated)
    );
end
$$;

revoke all on function jobq_private.divert_jobs from public;

comment on function jobq_private.divert_jobs is
'Has jobs whose kinds have a gate wait in lanes, and returns the others.';

-- Purpose: how many jobs a claim may start in a queue that has limits as a whole.
-- Invariant: the queue's gate is the caller's until the commit; zero while it is somebody
-- else's. Each look has a snapshot of its own. Raises: nothing.
create or replace function jobq_private.enter_queue(
    queue text, wanted integer, now timestamptz
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _room integer;
begin
    if jobq_private.hold_gates(
        queue, array[jobq_private.gate_id(queue, null)]
    ) = '{}' then
        return 0;
    end if;
    _room := (select r.room from jobq_private.gate_room(queue, null, enter_queue.now) as r);
    if _room = 0 then
        perform jobq_private.pull_back(
            jobq_private.gate_id(q.queue, null),
            jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1),
            enter_queue.now
        )
        from jobq_private.queue as q
        where q.queue = enter_queue.queue and q.rate_limit is not null;
    end if;
    return least(wanted, _room);
end
$$;

revoke all on function jobq_private.enter_queue from public;

comment on function jobq_private.enter_queue is
'How many jobs a claim may start in a queue that has limits as a whole.';

-- Purpose: in words, which limits, rates, holds and orders keep a waiting job from starting.
-- Invariant: reads only; no row when none does. Raises: nothing.
create or replace function jobq_private.explain_barriers(job_id uuid)
returns table (reason text, explanation text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select b.reason, case b.reason
        when 'held' then format('%s, held until %s', b.scope, b.open_at)
        when 'rate_limited' then format('%s: the next starts at %s', b.scope, b.open_at)
        when 'ordered_behind' then format('%s goes first', b.scope)
        when 'key_busy' then format('%s at once, and so many run: %s', b.scope, h.holders)
        else format('%s: as many run as its limit says', b.scope)
    end
    from jobq_private.job as j
    cross join lateral jobq_private.barriers(j, clock_timestamp()) as b
    cross join lateral (
        select string_agg(format('job %s on %s', t.job_id, t.worker), ', ') as holders
        from (
            select o.job_id, o.worker
            from jobq_private.job as o
            where o.place is not null
            and case when b.scope like 'kind %'
                then o.kind = j.kind and o.concurrency_key = j.concurrency_key
                else o.queue = j.queue and o.lane_id = j.lane_id
            end
            limit 3
        ) as t
    ) as h
    where j.job_id = explain_barriers.job_id
    and j.state in ('queued', 'retrying')
$$;

revoke all on function jobq_private.explain_barriers from public;

comment on function jobq_private.explain_barriers is
'Says which limits, rates, holds and orders keep a waiting job from starting.';

-- Purpose: the place of a job that is to start by no claim of a batch: a claim of one job, or raw
-- SQL; null where nothing counts what runs, and where the job may not start: barrier says why.
-- Invariant: waits for the locks of all gates that the job passes, and of its lane, and then looks;
-- the caller charges them. Raises: nothing.
create or replace function jobq_private.find_place(
    job jobq_private.job, out place smallint, out barrier text
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _max_running integer;
begin
    perform pg_advisory_xact_lock_shared(_limits, hashtext(job.queue) & 255);
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(job.queue);
    end if;
    if not jobq_private.has_counted() then
        barrier := 'limits have just changed';
        return;
    end if;
    perform jobq_private.wait_for_gates(job);
    barrier := (
        select b.scope from jobq_private.barriers(job, clock_timestamp(), 1) as b
    );
    if barrier is not null then
        return;
    end if;
    _max_running := (
        select coalesce(r.max_running, case
            when num_nonnulls(q.max_running, k.max_running) > 0
            or job.concurrency_key is not null and exists (
                select from jobq_private.key_rule(job.kind) as e where e.max_running is not null
            ) then 32767
        end)
        from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        left join jobq_private.queue as q on q.queue = job.queue
        left join jobq_private.kind as k on k.kind = job.kind
    );
    if job.lane_id is null then
        place := case when _max_running is not null then 1 end;
        return;
    end if;
    place := (
        select p.places[1]
        from jobq_private.free_places(job.queue, job.lane_id, _max_running, 1) as p (places)
    );
end
$$;

revoke all on function jobq_private.find_place from public;

comment on function jobq_private.find_place is
'Finds the place of a job that is to start, or what keeps it from that.';

-- Purpose: the free places of a lane below its limit, the lowest, as many as are wanted
-- and may be taken; null without a limit.
-- Invariant: counts what runs, from job_place_idx, with the snapshot of the statement: what
-- ended in whatever way is free. What runs above a limit that was lowered counts too. One
-- row; no SET clause, so that it is inlined, and offset 0, so that it is evaluated once.
-- Raises: nothing.
create or replace function jobq_private.free_places(
    queue text, lane_id uuid, max_running integer, wanted integer
)
returns setof smallint[]
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select case
        when max_running is null then null
        when t.places = '{}' and wanted = 1 then '{1}'::smallint[]
        else array(
            select n::smallint
            from pg_catalog.generate_series(
                1, least(max_running, pg_catalog.cardinality(t.places) + wanted)
            ) as n
            where n <> all (t.places)
            limit greatest(0, least(wanted, max_running - pg_catalog.cardinality(t.places)))
        )
    end
    from (
        select array(
            select j.place
            from jobq_private.job as j
            where max_running is not null
            and j.queue = free_places.queue
            and j.lane_id = free_places.lane_id
            and j.place is not null
        ) as places
        offset 0
    ) as t
    offset 0
$$;

revoke all on function jobq_private.free_places from public;

comment on function jobq_private.free_places is
'The free places of a lane below its limit, as many as are wanted and may be taken.';

-- Purpose: how many jobs of a whole queue (kind null) or of a whole kind (queue null) may start now,
-- null for any number; and when that changes by itself.
-- Invariant: exact for who holds the gate; counts what runs, from job_place_idx. Raises: nothing.
create or replace function jobq_private.gate_room(
    queue text, kind text, now timestamptz, out room integer, out open_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gate jobq_private.gate;
    _rule record;
    _spacing bigint;
begin
    select g.* into _gate
    from jobq_private.gate as g
    where g.gate_id = jobq_private.gate_id(gate_room.queue, gate_room.kind);
    if _gate.held_until > now then
        room := 0;
        open_at := _gate.held_until;
        return;
    end if;
    select r.* into _rule
    from (
        select q.max_running, q.rate_limit, q.rate_period, coalesce(q.rate_burst, 1) as burst
        from jobq_private.queue as q
        where q.queue = gate_room.queue
        union all
        select k.max_running, k.rate_limit, k.rate_period, coalesce(k.rate_burst, 1)
        from jobq_private.kind as k
        where k.kind = gate_room.kind
    ) as r;
    _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
    room := jobq_private.tokens(_gate.passed_until, _spacing, _rule.burst, now);
    open_at := jobq_private.token_at(_gate.passed_until, _spacing, _rule.burst, now);
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - case
            when gate_room.queue is not null then (
                select count(*) from jobq_private.job as j
                where j.queue = gate_room.queue and j.place is not null
            )
            else (
                select count(*) from jobq_private.job as j
                where j.kind = gate_room.kind and j.place is not null
            )
        end));
    end if;
end
$$;

revoke all on function jobq_private.gate_room from public;

comment on function jobq_private.gate_room is
'How many jobs of a queue or a kind may start now, and when that changes by itself.';

-- Purpose: lock lanes that wait for gates of kinds, for each gate as many of the highest priority as it
-- lets jobs pass, in the session's turn.
-- Invariant: bounded; SKIP LOCKED. The turn is that of pick_lanes(), so that it meets lanes that were opened next.
-- Lanes that wait for a gate that is gone are among them, and one of a gate that is to be pulled back.
-- Raises: nothing.
create or replace function jobq_private.gated_lanes(queue text, now timestamptz)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _last constant uuid := coalesce(
        nullif(current_setting('jobq.lane_' || (hashtext(queue) & 1023), true), '')::uuid,
        gen_random_uuid()
    );
    _gate record;
    _lanes jobq_private.lane[] := '{}'::jobq_private.lane[];
    _some jobq_private.lane[];
begin
    for _gate in
        select
            a.gate_id, least(coalesce(greatest(a.room, 1), 100), 100) as room,
            (
                select t.priority
                from jobq_private.lane as t
                where t.queue = gated_lanes.queue and t.gate_id = a.gate_id
                order by t.priority desc
                limit 1
            ) as priority
        from jobq_private.awaited_gates(gated_lanes.queue, gated_lanes.now) as a
        left join jobq_private.gate as g on g.gate_id = a.gate_id
        left join jobq_private.kind as k on k.kind = g.kind
        where coalesce(a.room, 1) > 0
        or g.passed_until > gated_lanes.now + coalesce(k.rate_burst, 1)
            * jobq_private.spacing(k.rate_limit, k.rate_period) * interval '1 us'
    loop
        _some := array(
            select t
            from jobq_private.lane as t
            where t.queue = gated_lanes.queue and t.gate_id = _gate.gate_id
            and t.priority = _gate.priority and t.lane_id > _last
            order by t.lane_id
            limit _gate.room
            for update skip locked
        );
        if cardinality(_some) < _gate.room then
            _some := _some || array(
                select t
                from jobq_private.lane as t
                where t.queue = gated_lanes.queue and t.gate_id = _gate.gate_id
                and t.priority = _gate.priority and t.lane_id <= _last
                order by t.lane_id
                limit _gate.room - cardinality(_some)
                for update skip locked
            );
        end if;
        _lanes := _lanes || _some;
    end loop;
    return _lanes;
end
$$;

revoke all on function jobq_private.gated_lanes from public;

comment on function jobq_private.gated_lanes is
'Locks lanes that wait for gates of kinds, as many as these let pass.';

-- Purpose: whether all that runs has its place where limits count it: after a change of limits by a
-- repeatable snapshot, which may not have seen all that ran, the next claim of any queue gives them.
-- Invariant: one claim does, and nobody waits: false for all others meanwhile, and while another
-- transaction has one of these jobs. Raises: nothing.
create or replace function jobq_private.has_counted()
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _uncounted uuid[];
begin
    if not exists (select from jobq_private.kind_gate as k where k.gate_id is null) then
        return true;
    elsif not pg_try_advisory_xact_lock(_limits, 256) then
        return false;
    end if;
    _uncounted := array(select jobq_private.uncounted(null));
    if cardinality(_uncounted) > cardinality(array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_uncounted)
        for update skip locked
    )) then
        return false;
    end if;
    perform jobq_private.number_running(null);
    delete from jobq_private.kind_gate as k where k.gate_id is null;
    return true;
end
$$;

revoke all on function jobq_private.has_counted from public;

comment on function jobq_private.has_counted is
'Says whether all that runs has its place where limits count it.';

-- Purpose: hold the lane of a dead job where its order asks for that: until the job is redriven or
-- the key released.
-- Invariant: in the transaction in which it died. Raises: nothing.
create or replace function jobq_private.hold_after_dead(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        where r.is_ordered and r.holds_on_dead
        union all
        select from jobq_private.key_rule(job.kind) as r
        where r.holds_on_dead and job.concurrency_key is not null
    ) then
        perform jobq_private.store_hold(
            job.lane_id, job.queue, null, 'infinity', format('job %s is dead', job.job_id),
            job.concurrency_key
        );
    end if;
end
$$;

revoke all on function jobq_private.hold_after_dead from public;

comment on function jobq_private.hold_after_dead is
'Holds the lane of a dead job where its order asks for that.';

-- Purpose: lock these gates of a queue or its lanes, and return those that were free.
-- Invariant: SKIP LOCKED, and a gate that has no row is made under an advisory lock that is
-- only tried, so nobody waits. A repeatable snapshot that is older than somebody's passing
-- fails here. Raises: nothing.
create or replace function jobq_private.hold_gates(queue text, gates uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    insert into jobq_private.gate (gate_id, queue)
    select n.gate_id, hold_gates.queue
    from (
        select u.gate_id
        from unnest(hold_gates.gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        offset 0
    ) as n
    where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(n.gate_id))
    on conflict on constraint gate_pkey do nothing;
    return array(
        select g.gate_id
        from jobq_private.gate as g
        where g.gate_id = any (hold_gates.gates)
        for update skip locked
    );
end
$$;

revoke all on function jobq_private.hold_gates from public;

comment on function jobq_private.hold_gates is
'Locks gates, and returns those that were free.';

-- Purpose: of these lanes of one queue those that a claim may take from: all without a rate or an order, and
-- of the others those whose gates it could lock.
-- Invariant: as hold_gates(). Raises: nothing.
create or replace function jobq_private.hold_ruled_lanes(lanes jobq_private.lane[])
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _ruled uuid[];
    _held uuid[];
begin
    _ruled := array(
        select l.lane_id
        from unnest(hold_ruled_lanes.lanes) as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        where r.spacing is not null or r.is_ordered
    );
    _held := jobq_private.hold_gates((lanes[1]).queue, _ruled);
    return array(
        select hold_ruled_lanes.lanes[l.ordinality]
        from unnest(hold_ruled_lanes.lanes) with ordinality as l
        where l.lane_id <> all (_ruled) or l.lane_id = any (_held)
        order by l.ordinality
    );
end
$$;

revoke all on function jobq_private.hold_ruled_lanes from public;

comment on function jobq_private.hold_ruled_lanes is
'Of these lanes those that a claim may take from.';

-- Purpose: once lanes, limits of kinds or workflows are used, claims look for them.
-- Invariant: the row comes with the first that is to be found, in one commit, and stays: a claim
-- that does not see it would not see those either. Two that are first at once leave two rows.
-- Raises: nothing.
create or replace function jobq_private.note_use()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from jobq_private.in_use as u) then
        insert into jobq_private.in_use default values;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.note_use from public;

comment on function jobq_private.note_use is
'Notes that lanes, limits of kinds or workflows are used.';

create or replace trigger in_use_lanes
after insert on jobq_private.lane_call
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_gates
after insert on jobq_private.kind_gate
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_looks
after insert on jobq_private.look
for each statement execute function jobq_private.note_use();

-- Purpose: how many jobs of a kind's key may start now, in whichever queue, null for any number; when
-- that changes by itself; and the job that waits again, before which no other may start.
-- Invariant: exact for who holds the gate of the key. Looks for what runs into one lane of each queue in
-- which something has a place. Raises: nothing.
create or replace function jobq_private.key_room(
    kind text, concurrency_key text, now timestamptz,
    out room integer, out open_at timestamptz, out head_job_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _rule jobq_private.lane_rule;
    _gate jobq_private.gate;
begin
    select r.* into _rule from jobq_private.key_rule(key_room.kind) as r;
    select g.* into _gate
    from jobq_private.gate as g
    where g.gate_id = jobq_private.key_gate_id(key_room.kind, key_room.concurrency_key);
    room := jobq_private.tokens(_gate.passed_until, _rule.spacing, _rule.burst, now);
    open_at := jobq_private.token_at(_gate.passed_until, _rule.spacing, _rule.burst, now);
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - (
            with recursive active as (
                (
                    select j.queue from jobq_private.job as j
                    where j.place is not null
                    order by j.queue
                    limit 1
                )
                union all
                select n.queue
                from active as a
                cross join lateral (
                    select j.queue from jobq_private.job as j
                    where j.place is not null and j.queue > a.queue
                    order by j.queue
                    limit 1
                ) as n
            )
            select count(*)
            from active as a
            join jobq_private.job as j on j.queue = a.queue
                and j.lane_id = jobq_private.lane_id(a.queue, key_room.concurrency_key)
                and j.place is not null
            where j.kind = key_room.kind
        )));
    end if;
    if _rule.is_ordered then
        head_job_id := (
            select j.job_id from jobq_private.job as j
            where j.job_id = _gate.head_job_id and j.state <> 'running'
        );
    end if;
end
$$;

revoke all on function jobq_private.key_room from public;

comment on function jobq_private.key_room is
'How many jobs of a kind''s key may start now, when that changes by itself, and which goes first.';

-- Purpose: the gates of kinds are known to claims.
-- Invariant: kind_gate has a row for each gate with a kind. Raises: nothing.
create or replace function jobq_private.follow_gates()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into jobq_private.kind_gate (gate_id) values (new.gate_id);
    else
        delete from jobq_private.kind_gate as k where k.gate_id = old.gate_id;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.follow_gates from public;

comment on function jobq_private.follow_gates is
'Has claims know of the gates of kinds.';

create or replace trigger kind_gate_birth
after insert on jobq_private.gate
for each row when (new.kind is not null)
execute function jobq_private.follow_gates();

create or replace trigger kind_gate_end
after delete on jobq_private.gate
for each row when (old.kind is not null)
execute function jobq_private.follow_gates();

-- Purpose: a change of a kind's limits holds at once: claims see its gate, and what runs counts.
-- Invariant: fires for a change alone, also by raw SQL. Waits for claims of all queues, since jobs of
-- the kind may come into any, and then writes to its gate, so that who starts a job can hold that
-- meanwhile. Raises: nothing.
create or replace function jobq_private.follow_kind_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _kind constant text := coalesce(new.kind, old.kind);
    _queue text;
begin
    perform pg_advisory_xact_lock(_limits, n.slot)
    from generate_series(0, 255) as n (slot);
    update jobq_private.limit_change as c set changed_at = clock_timestamp() where c.slot = 256;
    if num_nonnulls(new.max_running, new.rate_limit) > 0 then
        insert into jobq_private.gate as g (gate_id, kind)
        values (jobq_private.gate_id(null, _kind), _kind)
        on conflict on constraint gate_pkey do nothing;
    else
        delete from jobq_private.gate as g
        where g.kind = _kind and g.queue is null;
    end if;
    delete from jobq_private.kind_gate as k
    where k.gate_id = jobq_private.key_gate_id(_kind, '');
    if num_nonnulls(new.key_max_running, new.key_rate_limit, new.ordered) > 0 then
        insert into jobq_private.kind_gate (gate_id)
        values (jobq_private.key_gate_id(_kind, ''));
    end if;
    for _queue in
        select q.queue
        from (
            select j.queue from jobq_private.job as j where j.kind = _kind
            union
            select unnest(w.queues) from jobq_private.worker as w
        ) as q
        order by q.queue
    loop
        perform jobq_private.limits_changed(_queue);
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.follow_kind_limits from public;

comment on function jobq_private.follow_kind_limits is
'Has claims follow a change of a kind''s limits.';

create or replace trigger kind_limits
after update on jobq_private.kind
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead
    )
)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_birth_limits
after insert on jobq_private.kind
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered
) > 0)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_end_limits
after delete on jobq_private.kind
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered
) > 0)
execute function jobq_private.follow_kind_limits();

-- Purpose: the least lane that a queue may have, by which an index of lanes is a range of its queue's.
-- Invariant: the range may hold lanes of another queue whose hash begins alike: who reads it
-- compares the queue too. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_floor(queue text)
returns uuid
language sql
immutable
parallel safe
security invoker
as $$
    select (
        pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(pg_catalog.convert_to(lane_floor.queue, 'UTF8')), 1, 6
        ), 'hex') || '00000000000000000000'
    )::pg_catalog.uuid
$$;

revoke all on function jobq_private.lane_floor from public;

comment on function jobq_private.lane_floor is
'The least lane that a queue may have.';

-- Purpose: of each of these lanes the job of an ordered kind that waits again in it, before which no other
-- may start; null where no kind is ordered.
-- Invariant: the earliest, where kinds have one each. Raises: nothing.
create or replace function jobq_private.lane_heads(lanes jobq_private.lane[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
    _kinds constant text[] := array(
        select k.kind from jobq_private.kind as k where k.ordered
    );
begin
    if _kinds = '{}' then
        return null;
    end if;
    return array(
        select (
            select j.job_id
            from unnest(_kinds) as k (kind)
            join jobq_private.gate as g
                on g.gate_id = jobq_private.key_gate_id(k.kind, l.concurrency_key)
            join jobq_private.job as j on j.job_id = g.head_job_id
            where j.lane_id = l.lane_id and j.state in ('queued', 'retrying')
            order by j.run_at, j.job_id
            limit 1
        )
        from unnest(lane_heads.lanes) with ordinality as l
        order by l.ordinality
    );
end
$$;

revoke all on function jobq_private.lane_heads from public;

comment on function jobq_private.lane_heads is
'Of each of these lanes the job of an ordered kind that goes first.';

-- Purpose: whether rates or an order bind lanes of a queue; whether all lanes with a key are alike,
-- none with limits of its own or held; and how many jobs each may then run.
-- Invariant: what lane_rule() says of a lane without limits of its own; the caller holds off a
-- change of the queue's limits. Hot: it pins the search path too. Raises: nothing.
create or replace function jobq_private.lane_rules(
    queue text, now timestamptz,
    out has_rules boolean, out are_alike boolean, out max_running integer
)
language plpgsql
stable
parallel safe
security invoker
as $$
begin
    select
        r.has_rules,
        not r.has_rules
        and not exists (
            select from jobq_private.key_limit as l where l.queue = lane_rules.queue
        )
        and not exists (
            select from jobq_private.gate as g
            where g.queue = lane_rules.queue and g.held_until > lane_rules.now
        ),
        case when q.ordered then 1 else q.key_max_running end
    into lane_rules.has_rules, lane_rules.are_alike, lane_rules.max_running
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = lane_rules.queue
    cross join lateral (
        select num_nonnulls(q.key_rate_limit, nullif(q.ordered, false)) > 0 or exists (
            select from jobq_private.key_limit as l
            where l.queue = lane_rules.queue and l.rate_limit is not null
        ) as has_rules
        offset 0
    ) as r;
end
$$;

revoke all on function jobq_private.lane_rules from public;

comment on function jobq_private.lane_rules is
'Whether rates or an order bind lanes of a queue, and whether all are alike.';

-- Purpose: which of 256 advisory locks guards the closing of a lane.
-- Invariant: few enough that no batch takes all of the server's. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.lane_slot(lane_id uuid)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.uuid_hash(lane_id) & 255
$$;

revoke all on function jobq_private.lane_slot from public;

comment on function jobq_private.lane_slot is
'Which of 256 advisory locks guards the closing of a lane.';

-- Purpose: after an attempt that ended without success: its place is free, and the job
-- waits in its lane again if it has attempts left.
-- The lane of a dead job may have to wait for an operator.
-- Invariant: the protocol of call_lane(). Jobs that are dead or cancelled are told of by
-- archive_jobs(). Raises: nothing.
create or replace function jobq_private.leave_lane(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state = 'dead' then
        perform jobq_private.hold_after_dead(job);
    elsif job.state <> 'cancelled' then
        if job.lane_id is not null then
            perform jobq_private.call_lane(
                job.lane_id, job.queue, job.concurrency_key, job.priority, job.run_at
            );
        end if;
        perform jobq_private.call_full_lanes(
            array[job.queue], array[job.lane_id], array[job.kind],
            array[job.concurrency_key]
        );
    end if;
end
$$;

revoke all on function jobq_private.leave_lane from public;

comment on function jobq_private.leave_lane is
'Has a lane opened that an attempt has left.';

-- Purpose: leave_lane() for a set of jobs whose attempts have ended, in these states, parallel to the
-- ids: places are free, and the jobs wait in their lanes again if they have attempts left.
-- Invariant: all are live still, also the dead ones, whose move into the archive tells of the others
-- of their lanes. Raises: nothing.
create or replace function jobq_private.leave_lanes(job_ids uuid[], states text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _waiting constant uuid[] := array(
        select e.job_id
        from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
        where e.state = 'retrying'
    );
begin
    perform jobq_private.hold_after_dead(j)
    from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
    join jobq_private.job as j on j.job_id = any(leave_lanes.job_ids) and j.job_id = e.job_id
    where e.state = 'dead' and j.lane_id is not null;

    perform jobq_private.call_lanes(_waiting);
    perform jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind),
        array_agg(j.concurrency_key)
    )
    from jobq_private.job as j
    where j.job_id = any(_waiting)
    having count(*) > 0;
end
$$;

revoke all on function jobq_private.leave_lanes from public;

comment on function jobq_private.leave_lanes is
'Has lanes opened that many attempts have left.';

-- Purpose: after a change of what a queue, its keys or a kind of its may: give places to what runs
-- without, and open the lanes that are closed.
-- Invariant: the exclusive lock waits for the claims that looked at the old limit, and keeps
-- new ones off until the commit; so none starts unseen, and no lane stays closed. A repeatable
-- snapshot may not see all that those claims have started: has_counted(). Raises: nothing.
create or replace function jobq_private.limits_changed(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _slot constant integer := hashtext(queue) & 255;
begin
    perform pg_advisory_xact_lock(_limits, _slot);
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.slot = _slot;
    if current_setting('transaction_isolation') = 'read committed' then
        perform jobq_private.number_running(queue);
    else
        insert into jobq_private.kind_gate (gate_id) values (null);
    end if;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.queue = limits_changed.queue and l.state <> 'open';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';

-- Purpose: lock the rows of these lanes, of whatever priority, and return the lanes of which no
-- other has one: what runs in a lane is counted for all its priorities.
-- Invariant: SKIP LOCKED. A lane that has no row counts as free: open_called_lanes() makes it under
-- a lock of its own. Raises: nothing.
create or replace function jobq_private.lock_lanes(lanes uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _mine tid[];
begin
    _mine := array(
        select l.ctid
        from jobq_private.lane as l
        where l.lane_id = any (lock_lanes.lanes)
        for update skip locked
    );
    return array(
        select distinct u.lane_id
        from unnest(lock_lanes.lanes) as u (lane_id)
        where u.lane_id not in (
            select l.lane_id
            from jobq_private.lane as l
            where l.lane_id = any (lock_lanes.lanes) and l.ctid <> all (_mine)
        )
    );
end
$$;

revoke all on function jobq_private.lock_lanes from public;

comment on function jobq_private.lock_lanes is
'Of these lanes those of which no other has a row, locked.';

-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: holds off a change of the queue's limits until the commit, by one of 256 locks;
-- where such a change is under way, or what runs has not been counted since, the queue looks
-- paused for now, so that no claim waits. Hot: its callers pin the search path, and that no
-- plan is made for a call. Raises: nothing.
create or replace function jobq_private.look_at(queue text, now timestamptz)
returns jobq_private.queue_look
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _look jobq_private.queue_look;
begin
    if not pg_try_advisory_xact_lock_shared(
        jobq_private.lock_class('limiting'), hashtext(queue) & 255
    ) then
        _look.is_paused := true;
        return _look;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(queue);
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit) > 0,
        exists (select from jobq_private.in_use as u)
    into _look.is_paused, _look.is_limited, _look.is_used
    from (values (null)) as one
    left join jobq_private.queue as q on q.queue = look_at.queue;
    if _look.is_used then
        select
            g.has_gates,
            exists (
                select from jobq_private.lane as l
                where l.queue = look_at.queue
                and l.state <> 'full'
                and l.open_at <= look_at.now
            )
            or exists (select from jobq_private.lane_call as c where c.queue = look_at.queue)
            or g.has_gates and exists (
                select from jobq_private.lane as l
                where l.queue = look_at.queue and l.gate_id is not null
            )
        into _look.has_gates, _look.has_lanes
        from (select exists (select from jobq_private.kind_gate as k) as has_gates) as g;
        if _look.has_gates and not _look.is_paused then
            _look.is_paused := not jobq_private.has_counted();
        end if;
    end if;
    return _look;
end
$$;

revoke all on function jobq_private.look_at from public;

comment on function jobq_private.look_at is
'What a claim must know of a queue before it looks for jobs.';

-- Purpose: when the next lane of a queue may have work; -infinity where one may have it now, which
-- a claim will find, or has passed over because another held its limits.
-- Invariant: two index probes, and one more for each gate of a kind that lanes wait for. With kinds
-- that do not count, a probe for each lane at whose head one of them waits. Raises: nothing.
create or replace function jobq_private.next_lane(queue text, except_kinds text[])
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    if exists (select from jobq_private.lane_call as c where c.queue = next_lane.queue) then
        return '-infinity'::timestamptz;
    end if;
    return least(
        (
            select case when l.open_at > clock_timestamp() then l.open_at else '-infinity' end
            from jobq_private.lane as l
            where l.queue = next_lane.queue and l.state <> 'full'
            and (
                next_lane.except_kinds is null
                or (
                    select j.kind
                    from jobq_private.job as j
                    where j.lane_id = l.lane_id
                    and j.priority = l.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) <> all (next_lane.except_kinds)
            )
            order by l.open_at
            limit 1
        ),
        (
            select min(case
                when coalesce(a.room, 1) > 0 then '-infinity' else a.open_at
            end)
            from jobq_private.awaited_gates(next_lane.queue, clock_timestamp()) as a
        )
    );
end
$$;

revoke all on function jobq_private.next_lane from public;

comment on function jobq_private.next_lane is
'Says when the next lane of a queue may have work.';

-- Purpose: the highest priority below this one at which a queue may have open lanes; null for none.
-- Invariant: 0, which nearly all have, is not looked for: the index page that told it would be read to
-- its end. Hot: its caller pins the search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.next_level(queue text, level integer)
returns integer
language plpgsql
stable
parallel safe
security invoker
as $$
begin
    return coalesce(
        (
            select l.priority
            from jobq_private.lane as l
            where l.queue = next_level.queue and l.state = 'open'
            and l.priority < next_level.level and l.priority > 0
            order by l.priority desc
            limit 1
        ),
        case when next_level.level > 0 then 0 end,
        (
            select l.priority
            from jobq_private.lane as l
            where l.queue = next_level.queue and l.state = 'open'
            and l.priority < least(next_level.level, 0)
            order by l.priority desc
            limit 1
        )
    );
end
$$;

revoke all on function jobq_private.next_level from public;

comment on function jobq_private.next_level is
'The highest priority below this one at which a queue may have open lanes.';

-- Purpose: the jobs that run without a place where limits count what runs, of a queue, null for all.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.uncounted(queue text)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select j.job_id
    from jobq_private.job as j
    cross join lateral jobq_private.lane_rule(j.queue, j.concurrency_key) as r
    left join jobq_private.queue as q on q.queue = j.queue
    left join jobq_private.kind as k on k.kind = j.kind
    where (uncounted.queue is null or j.queue = uncounted.queue)
    and j.state = 'running'
    and j.place is null
    and (
        num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
        or j.concurrency_key is not null and exists (
            select from jobq_private.key_rule(j.kind) as e where e.max_running is not null
        )
    )
$$;

revoke all on function jobq_private.uncounted from public;

comment on function jobq_private.uncounted is
'The jobs that run without a place where limits count what runs.';

-- Purpose: give places to what runs without in a queue (null for all), where limits count what runs.
-- Invariant: the caller keeps others from starting jobs there; what ends meanwhile gets no place.
-- Raises: nothing.
create or replace function jobq_private.number_running(queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with numbered as materialized (
        select j.job_id, case when j.lane_id is null then 1 else coalesce((
            select max(o.place) from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) end as place
        from jobq_private.uncounted(number_running.queue) as u (job_id)
        join jobq_private.job as j on j.job_id = u.job_id
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and j.state = 'running' and j.place is null
    and n.place <= 32767
$$;

revoke all on function jobq_private.number_running from public;

comment on function jobq_private.number_running is
'Gives places to what runs without in a queue, where limits count what runs.';

-- Purpose: open the lanes of a queue that were called for.
-- Invariant: bounded; SKIP LOCKED. A call is used up only while nobody closes its lane, by the
-- lock of call_lane(), and under the locks of all rows of the lane; a lane that has none is made
-- under a lock that whoever starts a job by hand holds too. Else the call stays for the next
-- claim. Lanes are looked up by themselves, however many there are. Raises: nothing.
create or replace function jobq_private.open_called_lanes(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _making constant integer := jobq_private.lock_class('laning');
    _calls jobq_private.lane_call[];
    _free bigint[];
    _lanes uuid[];
    _new uuid[];
    _made uuid[];
begin
    _calls := array(
        select c
        from jobq_private.lane_call as c
        where c.queue = open_called_lanes.queue
        limit 500
        for update skip locked
    );
    if _calls = '{}' then
        return;
    end if;
    _free := array(
        select c.call_id
        from unnest(_calls) as c
        where pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(c.lane_id))
    );
    _lanes := jobq_private.lock_lanes(array(
        select c.lane_id from unnest(_calls) as c where c.call_id in (select unnest(_free))
    ));
    _new := array(
        select u.lane_id
        from unnest(_lanes) as u (lane_id)
        where not exists (
            select from jobq_private.lane as l where l.lane_id = u.lane_id offset 0
        )
    );
    if _new <> '{}' then
        _made := array(
            select u.lane_id
            from unnest(_new) as u (lane_id)
            where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(u.lane_id))
        );
        _lanes := array(
            select u.lane_id
            from unnest(_lanes) as u (lane_id)
            where u.lane_id not in (select unnest(_new))
            or u.lane_id in (select unnest(_made))
            and not exists (
                select from jobq_private.lane as l where l.lane_id = u.lane_id offset 0
            )
        );
    end if;
    _calls := array(
        select c
        from unnest(_calls) as c
        where c.call_id in (select unnest(_free)) and c.lane_id in (select unnest(_lanes))
    );
    delete from jobq_private.lane_call as d
    where d.queue = open_called_lanes.queue
    and d.call_id = any (array(select c.call_id from unnest(_calls) as c));

    insert into jobq_private.lane as l (lane_id, priority, queue, concurrency_key)
    select distinct c.lane_id, c.priority, c.queue, c.concurrency_key
    from unnest(_calls) as c
    where c.priority is not null
    order by c.lane_id, c.priority
    on conflict on constraint lane_pkey do update
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.state <> 'open';

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
    and (
        l.state = 'full'
        or l.state = 'later' and l.lane_id = any (array(
            select c.lane_id from unnest(_calls) as c where c.priority is null
        ))
    );
end
$$;

revoke all on function jobq_private.open_called_lanes from public;

comment on function jobq_private.open_called_lanes is
'Opens the lanes of a queue that were called for.';

-- Purpose: open the lanes of a queue that were called for, those whose time has come, and as many
-- as the gates of their kinds let pass.
-- Invariant: bounded; SKIP LOCKED, and under the locks of all rows of the lane, so that who has
-- made an open row sees who claims from another. Hot: its caller pins the search path, and that no
-- plan is made for a call. Raises: nothing.
create or replace function jobq_private.open_lanes(
    queue text, now timestamptz, has_gates boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _due jobq_private.lane[];
begin
    perform jobq_private.open_called_lanes(queue);
    _due := array(
        select t
        from jobq_private.lane as t
        where t.queue = open_lanes.queue
        and t.state <> 'full'
        and t.open_at > '-infinity'
        and t.open_at <= open_lanes.now
        order by t.open_at
        limit 200
        for update skip locked
    );
    if has_gates then
        _due := _due || jobq_private.gated_lanes(queue, open_lanes.now);
    end if;
    if _due <> '{}' then
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity', gate_id = null
        from unnest(_due) as d
        where l.lane_id = d.lane_id and l.priority = d.priority
        and l.lane_id in (
            select unnest(jobq_private.lock_lanes(array(select w.lane_id from unnest(_due) as w)))
        );
    end if;
end
$$;

revoke all on function jobq_private.open_lanes from public;

comment on function jobq_private.open_lanes is
'Opens the lanes of a queue that were called for, and those whose time has come.';

-- Purpose: of jobs that a claim has locked in lanes of a queue, those that the limits of their kinds for each key let
-- pass; and the lanes of the others.
-- Invariant: what a key may start is counted after its gate's lock was had. Where another holds it, the
-- lane stays open. None passes one before it in its lane. Raises: nothing.
create or replace function jobq_private.pass_keys(
    queue text, now timestamptz, inout jobs tid[], inout places smallint[],
    out barred jobq_private.barred_lane[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _kinds text[];
    _gates uuid[];
    _held uuid[];
begin
    _kinds := array(
        select k.kind
        from jobq_private.kind as k
        where k.kind = any (array(
            select j.kind from jobq_private.job as j
            where j.ctid = any (pass_keys.jobs) and j.concurrency_key is not null
        ))
        and num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered) > 0
    );
    if _kinds = '{}' then
        return;
    end if;
    _gates := array(
        select distinct jobq_private.key_gate_id(j.kind, j.concurrency_key)
        from jobq_private.job as j
        where j.ctid = any (pass_keys.jobs)
        and j.kind = any (_kinds)
        and j.concurrency_key is not null
    );
    _held := jobq_private.hold_gates(queue, _gates);
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.job_id, j.lane_id, j.kind, j.concurrency_key, g.gate_id,
            row_number() over (partition by g.gate_id order by u.n) as nth
        from unnest(pass_keys.jobs, pass_keys.places) with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        cross join lateral (
            select case
                when j.kind = any (_kinds)
                then jobq_private.key_gate_id(j.kind, j.concurrency_key)
            end
            offset 0
        ) as g (gate_id)
    ),
    room as materialized (
        select d.gate_id, r.room, r.head_job_id
        from (
            select distinct c.gate_id, c.kind, c.concurrency_key
            from candidate as c
            where c.gate_id = any (_held)
        ) as d
        cross join lateral jobq_private.key_room(d.kind, d.concurrency_key, pass_keys.now) as r
    ),
    judged as materialized (
        select c.*, bool_and(
            c.gate_id is null or c.gate_id = any (_held)
            and c.nth <= coalesce(r.room, 2147483647)
            and coalesce(r.head_job_id, c.job_id) = c.job_id
        ) over (partition by c.lane_id order by c.n) as may_pass
        from candidate as c
        left join room as r on r.gate_id = c.gate_id
    ),
    stopped as (
        select distinct on (j.lane_id) j.lane_id, j.kind, j.concurrency_key, j.gate_id
        from judged as j
        where not j.may_pass
        order by j.lane_id, j.n
    ),
    barred as (
        select s.lane_id, s.kind, s.concurrency_key
        from stopped as s
        where s.gate_id = any (_held)
    )
    select
        coalesce((select array_agg(j.job order by j.n) from judged as j where j.may_pass), '{}'),
        (select array_agg(j.place order by j.n) from judged as j where j.may_pass),
        (select array_agg(b::jobq_private.barred_lane) from barred as b)
    into pass_keys.jobs, pass_keys.places, pass_keys.barred;
end
$$;

revoke all on function jobq_private.pass_keys from public;

comment on function jobq_private.pass_keys is
'Of jobs in lanes those that the limits of their kinds for each key let pass.';

-- Purpose: of jobs that a claim has locked in lanes, those that the gates of their kinds let
-- pass; and the lanes of the others, with the gates that they are to wait for.
-- Invariant: what a kind may start is counted after its gate's lock was had. Where another holds
-- it, the lane stays open. None passes one before it in its lane: a lane waits for the gate of the
-- first that may not start. Raises: nothing.
create or replace function jobq_private.pass_kinds(
    now timestamptz, inout jobs tid[], inout places smallint[],
    out barred uuid[], out gates uuid[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _held uuid[];
begin
    _held := array(
        select g.gate_id
        from jobq_private.gate as g
        where g.kind = any (array(
            select j.kind from jobq_private.job as j where j.ctid = any (pass_kinds.jobs)
        ))
        and g.queue is null
        for update skip locked
    );
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.lane_id, g.gate_id, g.kind,
            row_number() over (partition by g.gate_id order by u.n) as nth
        from unnest(pass_kinds.jobs, pass_kinds.places)
            with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        left join jobq_private.gate as g on g.kind = j.kind and g.queue is null
    ),
    room as materialized (
        select d.gate_id, case
            when d.gate_id <> all (_held) then 0
            else (select r.room from jobq_private.gate_room(null, d.kind, pass_kinds.now) as r)
        end as room
        from (
            select distinct c.gate_id, c.kind from candidate as c where c.gate_id is not null
        ) as d
    ),
    judged as materialized (
        select c.*, bool_and(c.nth <= coalesce(r.room, 2147483647)) over (
            partition by c.lane_id order by c.n
        ) as may_pass
        from candidate as c
        left join room as r on r.gate_id = c.gate_id
    ),
    stopped as (
        select distinct on (j.lane_id) j.lane_id, j.gate_id
        from judged as j
        where not j.may_pass
        order by j.lane_id, j.n
    ),
    closed as (
        select s.* from stopped as s where s.gate_id = any (_held)
    )
    select
        coalesce((select array_agg(j.job order by j.n) from judged as j where j.may_pass), '{}'),
        (select array_agg(j.place order by j.n) from judged as j where j.may_pass),
        coalesce((select array_agg(c.lane_id order by c.lane_id) from closed as c), '{}'),
        coalesce((select array_agg(c.gate_id order by c.lane_id) from closed as c), '{}')
    into pass_kinds.jobs, pass_kinds.places, pass_kinds.barred, pass_kinds.gates;
    if pass_kinds.gates <> '{}' then
        perform jobq_private.pull_back(
            g.gate_id, jobq_private.spacing(k.rate_limit, k.rate_period),
            coalesce(k.rate_burst, 1), pass_kinds.now
        )
        from jobq_private.gate as g
        join jobq_private.kind as k on k.kind = g.kind
        where g.gate_id = any (pass_kinds.gates) and k.rate_limit is not null;
    end if;
end
$$;

revoke all on function jobq_private.pass_kinds from public;

comment on function jobq_private.pass_kinds is
'Of jobs in lanes those that the gates of their kinds let pass.';

-- Purpose: the next open lanes of a queue and priority in the session's turn, locked.
-- Invariant: SKIP LOCKED, so that no claim waits; goes round once. Sessions go round by themselves,
-- each from where it was; a forgotten place, as behind a pooler, only starts the round anew. Hot:
-- its caller pins the search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.pick_lanes(
    queue text, priority integer, max_lanes integer
)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _name constant text := 'jobq.lane_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _picked jobq_private.lane[];
    _more jobq_private.lane[];
begin
    _picked := array(
        select l
        from jobq_private.lane as l
        where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
        and l.state = 'open' and l.lane_id > _last
        order by l.lane_id
        limit pick_lanes.max_lanes
        for update skip locked
    );
    if cardinality(_picked) < pick_lanes.max_lanes then
        _more := array(
            select l
            from jobq_private.lane as l
            where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
            and l.state = 'open' and l.lane_id <= _last
            order by l.lane_id
            limit pick_lanes.max_lanes - cardinality(_picked)
            for update skip locked
        );
        _picked := _picked || _more;
    end if;
    if _picked <> '{}' then
        perform set_config(_name, (_picked[cardinality(_picked)]).lane_id::text, false);
    end if;
    return _picked;
end
$$;

revoke all on function jobq_private.pick_lanes from public;

comment on function jobq_private.pick_lanes is
'Locks the next open lanes of a queue and priority in the session''s turn.';

-- Purpose: a rate whose state lies further ahead than a whole burst, as after it was raised or the
-- clock was set back, is spent for one burst from now on.
-- Invariant: the caller holds the gate, and has found that it lets no job start. Raises: nothing.
create or replace function jobq_private.pull_back(
    gate_id uuid, spacing bigint, burst integer, now timestamptz
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set passed_until = pull_back.now + burst * spacing * interval '1 us'
    where g.gate_id = pull_back.gate_id
    and g.passed_until > pull_back.now + burst * spacing * interval '1 us'
$$;

revoke all on function jobq_private.pull_back from public;

comment on function jobq_private.pull_back is
'Has a rate that is spent for too long be spent for one burst.';

-- Purpose: a change of a queue's limits holds at once for its lanes.
-- Invariant: fires for a change alone, also by raw SQL. Raises: nothing.
create or replace function jobq_private.follow_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.limits_changed(coalesce(new.queue, old.queue));
    return null;
end
$$;

revoke all on function jobq_private.follow_limits from public;

comment on function jobq_private.follow_limits is
'Has a queue''s lanes follow a change of its limits.';

create or replace trigger queue_limits
after update on jobq_private.queue
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead
    )
)
execute function jobq_private.follow_limits();

create or replace trigger queue_birth_limits
after insert on jobq_private.queue
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger queue_end_limits
after delete on jobq_private.queue
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.follow_limits();

-- Purpose: when the limits of a whole queue let its next job start: at a time; at once (-infinity);
-- or when one has ended (infinity).
-- Invariant: one index probe where there is no such limit. Raises: nothing.
create or replace function jobq_private.queue_opens_at(queue text)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from jobq_private.queue as q
        where q.queue = queue_opens_at.queue
        and num_nonnulls(q.max_running, q.rate_limit) > 0
    ) then
        return '-infinity'::timestamptz;
    end if;
    return (
        select case
            when coalesce(r.room, 1) > 0 then '-infinity'
            else coalesce(r.open_at, 'infinity')
        end
        from jobq_private.gate_room(queue, null, clock_timestamp()) as r
    );
end
$$;

revoke all on function jobq_private.queue_opens_at from public;

comment on function jobq_private.queue_opens_at is
'When the limits of a whole queue let its next job start.';

-- Purpose: open lanes that are closed as full though they are not: where nobody told of the end of a
-- job, as after a raw delete, or repeatable snapshots that crossed.
-- Invariant: 200 lanes at a call, from where the session's last call ended. Raises: nothing.
create or replace function jobq_private.reopen_lanes()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _name constant text := 'jobq.reopened';
    _from constant uuid := coalesce(
        nullif(current_setting(_name, true), '')::uuid,
        '00000000-0000-0000-0000-000000000000'
    );
    _lanes uuid[];
    _queues text[];
begin
    _lanes := array(
        select l.lane_id
        from jobq_private.lane as l
        where l.lane_id > _from
        order by l.lane_id, l.priority
        limit 200
    );
    perform set_config(_name, coalesce(_lanes[200]::text, ''), false);
    with opened as (
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity'
        where l.ctid = any (array(
            select t.ctid
            from jobq_private.lane as t
            cross join lateral jobq_private.lane_rule(t.queue, t.concurrency_key) as r
            cross join lateral jobq_private.free_places(
                t.queue, t.lane_id, r.max_running, 1
            ) as p (places)
            where t.lane_id = any (_lanes)
            and t.state = 'full'
            and t.gate_id is null
            and p.places is distinct from '{}'
            and (
                t.key_gate_id is null
                or exists (
                    select
                    from (
                        select j
                        from jobq_private.job as j
                        where j.queue = t.queue
                        and j.lane_id = t.lane_id
                        and j.priority = t.priority
                        and j.state in ('queued', 'retrying')
                        order by j.run_at, j.job_id
                        limit 1
                    ) as h
                    where not exists (
                        select from jobq_private.barriers(h.j, clock_timestamp(), 1)
                    )
                )
            )
            for update of t skip locked
        ))
        returning l.queue
    )
    select array_agg(distinct o.queue) into _queues from opened as o;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
end
$$;

revoke all on function jobq_private.reopen_lanes from public;

comment on function jobq_private.reopen_lanes is
'Opens lanes that are closed as full though they are not.';

-- Purpose: have a repeatable snapshot that is older than the last change of a queue's or a kind's
-- limits fail with 40001: it would start jobs unseen.
-- Invariant: the caller holds the lock of the queue's limits, so that nobody waits. Raises:
-- nothing.
create or replace function jobq_private.see_limits(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.limit_change as c
    where c.slot in (hashtext(see_limits.queue) & 255, 256)
    for share;
end
$$;

revoke all on function jobq_private.see_limits from public;

comment on function jobq_private.see_limits is
'Has a snapshot that is older than the last change of limits fail.';

-- Purpose: hold the gate of a lane, or of a kind in a queue, until a time; a hold that lasts longer stays.
-- The key stands beside it for who looks.
-- Invariant: waits for claims that pass the gate; a gate that has no row is made under the lock
-- that claims try before they make one, so that none waits for this. Raises: nothing.
create or replace function jobq_private.store_hold(
    gate_id uuid, queue text, kind text, until timestamptz, reason text,
    concurrency_key text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    perform pg_advisory_xact_lock(_making, jobq_private.lane_slot(gate_id));
    insert into jobq_private.gate as g (
        gate_id, queue, kind, held_until, hold_reason, concurrency_key
    )
    values (
        store_hold.gate_id, store_hold.queue, store_hold.kind, store_hold.until,
        left(store_hold.reason, 512), store_hold.concurrency_key
    )
    on conflict on constraint gate_pkey do update
    set
        concurrency_key = excluded.concurrency_key,
        hold_reason = case
            when excluded.held_until >= g.held_until then excluded.hold_reason
            else g.hold_reason
        end,
        held_until = greatest(g.held_until, excluded.held_until);
end
$$;

revoke all on function jobq_private.store_hold from public;

comment on function jobq_private.store_hold is
'Holds the gate of a lane or a kind until a time.';

-- Purpose: of each of these lanes, its next due jobs and the places that they get; with the lanes
-- in which there was none, or that may not start one; and, for a caller that starts all of these
-- jobs and then looks for more, those that have no more.
-- Invariant: the caller holds the lanes' locks, and the gates of those with a rate or an order. One
-- job of each lane while there are lanes for all that is wanted (what is locked beyond that is
-- left), by statements of their own where all lanes are alike, as in most claims, and another where
-- none of their jobs runs; else equal shares. No more than its bounds say, null for what the queue
-- says of each key. Hot: its caller pins the search path, and that no plan is made for a call.
-- Raises: nothing.
create or replace function jobq_private.take_from_lanes(
    lanes jobq_private.lane[], max_running integer, bounds jobq_private.lane_bounds,
    now timestamptz, wanted integer, needs_places boolean, takes_all boolean
)
returns jobq_private.lane_batch
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _share constant integer := case cardinality(lanes)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / cardinality(lanes))
    end;
    _default constant integer := case when needs_places then 32767 end;
    _max_running constant integer[] := bounds.max_running;
    _starts constant integer[] := bounds.starts;
    _heads constant uuid[] := bounds.heads;
    _batch jobq_private.lane_batch;
    _none bigint[];
begin
    if _share = 1 and bounds is null then
        if num_nonnulls(max_running, _default) = 0 or not exists (
            select from jobq_private.job as j
            where j.queue = (take_from_lanes.lanes[1]).queue
            and j.lane_id = any (array(
                select l.lane_id from unnest(take_from_lanes.lanes) as l
            ))
            and j.place is not null
        ) then
            return jobq_private.take_heads(lanes, max_running, now, wanted, _default);
        end if;
        with busy as materialized (
            select j.lane_id, array_agg(j.place) as places
            from jobq_private.job as j
            where j.queue = (take_from_lanes.lanes[1]).queue
            and j.lane_id = any (array(
                select l.lane_id from unnest(take_from_lanes.lanes) as l
            ))
            and j.place is not null
            group by j.lane_id
        )
        select
            coalesce(array_agg(t.job) filter (where t.job is not null), '{}'),
            array_agg(t.place) filter (where t.job is not null),
            array_agg(t.n) filter (where t.job is null)
        into _batch.jobs, _batch.places, _none
        from (
            select l.ordinality as n, p.place, (
                select j.ctid
                from jobq_private.job as j
                where j.lane_id = l.lane_id
                and j.priority = l.priority
                and j.state in ('queued', 'retrying')
                and j.run_at <= take_from_lanes.now
                order by j.run_at, j.job_id
                limit case when m.max_running is null or p.place is not null then 1 else 0 end
                for update skip locked
            ) as job
            from unnest(take_from_lanes.lanes) with ordinality as l
            cross join lateral (
                select (
                    select b.places from busy as b where b.lane_id = l.lane_id limit 1
                ) as places
                offset 0
            ) as b
            cross join lateral (
                select coalesce(
                    case when l.concurrency_key is not null then take_from_lanes.max_running end,
                    _default
                ) as max_running
            ) as m
            cross join lateral (
                select case
                    when b.places is not null then (
                        select n::smallint
                        from generate_series(1, cardinality(b.places) + 1) as n
                        where cardinality(b.places) < m.max_running and n <> all (b.places)
                        limit 1
                    )
                    when m.max_running is not null then 1::smallint
                end as place
                offset 0
            ) as p
            offset 0
        ) as t;
        _batch.jobs := _batch.jobs[1:wanted];
        _batch.places := _batch.places[1:wanted];
        _batch.idle := array(select take_from_lanes.lanes[u.n] from unnest(_none) as u (n));
        return _batch;
    end if;
    with tried as materialized (
        select l.ordinality as n, p.places, array(
            select j.ctid
            from jobq_private.job as j
            where j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_from_lanes.now
            and (_heads[l.ordinality] is null or j.job_id = _heads[l.ordinality])
            order by j.run_at, j.job_id
            limit least(
                _share, _starts[l.ordinality],
                case when m.max_running is not null then coalesce(cardinality(p.places), 0) end
            )
            for update skip locked
        ) as jobs
        from unnest(take_from_lanes.lanes) with ordinality as l
        cross join lateral (
            select coalesce(
                case
                    when _starts is not null then _max_running[l.ordinality]
                    when l.concurrency_key is not null then take_from_lanes.max_running
                end,
                _default
            ) as max_running
            offset 0
        ) as m
        cross join lateral jobq_private.free_places(
            l.queue, l.lane_id, m.max_running, _share
        ) as p (places)
    ),
    taken as materialized (
        select u.job, t.places[u.k] as place
        from tried as t
        cross join lateral unnest(t.jobs) with ordinality as u (job, k)
        order by u.k, t.n
        limit wanted
    )
    select
        coalesce((select array_agg(t.job) from taken as t), '{}'),
        (select array_agg(t.place) from taken as t),
        array(
            select take_from_lanes.lanes[t.n]
            from tried as t
            where t.jobs = '{}'
            or takes_all and cardinality(t.jobs) < _share
            and (select count(*) from taken as k) < wanted
        )
    into _batch;
    return _batch;
end
$$;

revoke all on function jobq_private.take_from_lanes from public;

comment on function jobq_private.take_from_lanes is
'The next due jobs of lanes, with the places that they get.';

-- Purpose: take_from_lanes() where no job of these lanes runs: the next due job of each, in place 1 where
-- a limit counts what runs: for lanes with a key max_running, for all places.
-- Invariant: as take_from_lanes(). Raises: nothing.
create or replace function jobq_private.take_heads(
    lanes jobq_private.lane[], max_running integer, now timestamptz, wanted integer, places integer
)
returns jobq_private.lane_batch
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _batch jobq_private.lane_batch;
    _none bigint[];
begin
    select
        coalesce(array_agg(t.job) filter (where t.job is not null), '{}'),
        array_agg(t.place) filter (where t.job is not null),
        array_agg(t.n) filter (where t.job is null)
    into _batch.jobs, _batch.places, _none
    from (
        select
            l.ordinality as n,
            case
                when take_heads.places is not null
                or take_heads.max_running is not null and l.concurrency_key is not null
                then 1::smallint
            end as place,
            (
                select j.ctid
                from jobq_private.job as j
                where j.lane_id = l.lane_id
                and j.priority = l.priority
                and j.state in ('queued', 'retrying')
                and j.run_at <= take_heads.now
                order by j.run_at, j.job_id
                limit 1
                for update skip locked
            ) as job
        from unnest(take_heads.lanes) with ordinality as l
        offset 0
    ) as t;
    _batch.jobs := _batch.jobs[1:wanted];
    _batch.places := _batch.places[1:wanted];
    _batch.idle := array(select take_heads.lanes[u.n] from unnest(_none) as u (n));
    return _batch;
end
$$;

revoke all on function jobq_private.take_heads from public;

comment on function jobq_private.take_heads is
'The next due job of each of these lanes, none of whose jobs runs.';

-- Purpose: the place of a job that starts by raw SQL; null where nothing counts what runs.
-- Invariant: as find_place(); a claim has looked, and says the place. Raises: JQ011.
create or replace function jobq_private.take_place(job jobq_private.job)
returns smallint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found record;
begin
    select f.* into _found from jobq_private.find_place(job) as f;
    if _found.barrier is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _found.barrier);
    end if;
    return _found.place;
end
$$;

revoke all on function jobq_private.take_place from public;

comment on function jobq_private.take_place is
'Gives a job that starts its place, or refuses it.';

-- Purpose: how many jobs a rate lets start now: the generic cell rate algorithm, whose state
-- is the time until which the rate is spent. Null without a rate.
-- Invariant: never more than burst. What is spent lies at most a whole burst ahead; where it
-- lies further, the clock went back, and it counts as a whole burst. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.tokens(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns integer
language sql
stable
parallel safe
security invoker
as $$
    select case
        when spacing is null then null
        when passed_until is null or passed_until <= now then burst
        when passed_until >= now + burst * spacing * interval '1 us' then 0
        else ((
            burst * spacing - (extract(epoch from passed_until - now) * 1000000)::bigint
        ) / spacing)::integer
    end
$$;

revoke all on function jobq_private.tokens from public;

comment on function jobq_private.tokens is
'How many jobs a rate lets start now.';

-- Purpose: when a rate lets the next job start; null for at once.
-- Invariant: as tokens(). No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.token_at(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case
        when jobq_private.tokens(passed_until, spacing, burst, now) = 0
        then least(passed_until, now + burst * spacing * interval '1 us')
            - (burst - 1) * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.token_at from public;

comment on function jobq_private.token_at is
'When a rate lets the next job start.';

-- Purpose: lock the gates that a job passes, and its lane.
-- Invariant: waits, in the order of gates; gates that are missing are made. A lane that no claim has
-- opened has no row: then the lock under which claims make it stands for one. Raises: nothing.
create or replace function jobq_private.wait_for_gates(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making_gates constant integer := jobq_private.lock_class('gating');
    _making_lanes constant integer := jobq_private.lock_class('laning');
    _gates uuid[];
begin
    _gates := array(
        select g.gate_id from jobq_private.job_gates(job) as g
        where g.gate_id is distinct from job.lane_id or g.spacing is not null or g.is_ordered
        or exists (select from jobq_private.gate as e where e.gate_id = g.gate_id)
    );
    perform pg_advisory_xact_lock(_making_gates, n.slot)
    from (
        select distinct jobq_private.lane_slot(u.gate_id) as slot
        from unnest(_gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        order by slot
        offset 0
    ) as n;
    insert into jobq_private.gate (gate_id, queue)
    select u.gate_id, job.queue from unnest(_gates) as u (gate_id) order by u.gate_id
    on conflict on constraint gate_pkey do nothing;
    perform from jobq_private.gate as g
    where g.gate_id = any (_gates)
    order by g.gate_id
    for update;
    for _look in 1 .. 2 loop
        perform from jobq_private.lane as l
        where l.lane_id = job.lane_id
        order by l.priority
        for update;
        exit when found or job.lane_id is null;
        perform pg_advisory_xact_lock(_making_lanes, jobq_private.lane_slot(job.lane_id));
    end loop;
end
$$;

revoke all on function jobq_private.wait_for_gates from public;

comment on function jobq_private.wait_for_gates is
'Locks the gates that a job passes, and its lane.';

-- Purpose: after jobs of these kinds have ended in these queues: the queues in which others may start now
-- because of their kinds' limits: those in which lanes wait for a gate of them.
-- Invariant: a claim under way may be about to have lanes wait, which nobody sees yet: so
-- the queues in which jobs of such kinds have ended are among them in any case. Each gate is looked up
-- by itself, whatever the statistics say. Raises: nothing.
create or replace function jobq_private.waiting_queues(queues text[], kinds text[])
returns text[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select array_agg(distinct w.queue)
        from (
            select distinct e.queue, e.kind
            from unnest(waiting_queues.queues, waiting_queues.kinds) as e (queue, kind)
        ) as e
        cross join lateral (
            select g.gate_id from jobq_private.gate as g
            where g.kind = e.kind and g.queue is null
            offset 0
        ) as g
        cross join lateral (
            select e.queue
            union all
            select l.queue from jobq_private.lane as l where l.gate_id = g.gate_id
        ) as w
    );
end
$$;

revoke all on function jobq_private.waiting_queues from public;

comment on function jobq_private.waiting_queues is
'The queues in which others may start now after jobs of these kinds have ended.';

-- Purpose: of these lanes those of which no other claim has a row, of whatever priority: what runs
-- in a lane is counted for all priorities.
-- Invariant: as lock_lanes(). Rows of other priorities are looked for only where the queue has open
-- ones: who opens a row has all of its lane. Hot: its caller pins the search path, and that no plan
-- is made for a call. Raises: nothing.
create or replace function jobq_private.whole_lanes(
    lanes jobq_private.lane[], queue text, priority integer
)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _whole uuid[];
begin
    if not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority < whole_lanes.priority
    ) and not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority > whole_lanes.priority
    ) then
        return lanes;
    end if;
    _whole := jobq_private.lock_lanes(
        array(select g.lane_id from unnest(whole_lanes.lanes) as g)
    );
    return array(
        select whole_lanes.lanes[g.ordinality]
        from unnest(whole_lanes.lanes) with ordinality as g
        where g.lane_id = any (_whole)
        order by g.ordinality
    );
end
$$;

revoke all on function jobq_private.whole_lanes from public;

comment on function jobq_private.whole_lanes is
'Of these lanes those of which no other claim has a row.';

-- Purpose: have one key follow again what its queue says for each.
-- Invariant: holds at once for what starts. Raises: 22004, JQ007.
-- Returns: nothing.
-- Example: select jobq.delete_limit('mail', 'customer-42');
create or replace function jobq.delete_limit(queue text, concurrency_key text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(delete_limit.queue, delete_limit.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    delete from jobq_private.key_limit as l
    where l.queue = delete_limit.queue
    and l.concurrency_key = delete_limit.concurrency_key;
    if not found then
        perform jobq_private.raise_error('LIMIT_NOT_FOUND', format(
            'queue %s, concurrency_key %s', delete_limit.queue, delete_limit.concurrency_key
        ));
    end if;
    perform jobq_private.record_audit(
        'delete_limit', delete_limit.queue || ' ' || delete_limit.concurrency_key
    );
end
$$;

revoke all on function jobq.delete_limit from public;
grant execute on function jobq.delete_limit to jobq_operator;

comment on function jobq.delete_limit is
'Has one concurrency key follow again what its queue says for each.';

-- Purpose: start no job of one concurrency key of a queue until a time.
-- Invariant: what runs goes on; a hold that lasts longer stays. Raises: 22004, 22023.
-- Argument until: until then, or infinity until release_key() is called.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_key('mail', 'customer-7', now() + interval '1 min', 'asked to wait');
create or replace function jobq.hold_key(
    queue text, concurrency_key text, until timestamptz, reason text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(hold_key.queue, hold_key.concurrency_key, hold_key.until) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue, concurrency_key and until');
    elsif octet_length(hold_key.concurrency_key) not between 1 and 1024
        or length(hold_key.queue) not between 1 and 128
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a queue has 1 to 128 characters, a key 1 to 1024 bytes'
        );
    end if;
    perform jobq_private.store_hold(
        jobq_private.lane_id(hold_key.queue, hold_key.concurrency_key), hold_key.queue,
        null, hold_key.until, hold_key.reason, hold_key.concurrency_key
    );
    perform jobq_private.record_audit(
        'hold_key', hold_key.queue || ' ' || hold_key.concurrency_key, hold_key.reason
    );
end
$$;

revoke all on function jobq.hold_key from public;
grant execute on function jobq.hold_key to jobq_operator;

comment on function jobq.hold_key is
'Starts no job of one concurrency key of a queue until a time.';

-- Purpose: the limits of single keys, and how many jobs of each run.
-- Invariant: reads only. Raises: nothing.
-- Argument queue: of this queue alone; null means of all.
-- Column updated_at: when the limit was put.
-- Returns: a row for each limit.
-- Example: select * from jobq.list_limits('mail');
create or replace function jobq.list_limits(queue text default null)
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
        l.rate_burst, r.running, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral (
        select count(*) as running
        from jobq_private.job as j
        where j.queue = l.queue
        and j.lane_id = jobq_private.lane_id(l.queue, l.concurrency_key)
        and j.place is not null
    ) as r
    where list_limits.queue is null or l.queue = list_limits.queue
    order by l.queue, l.concurrency_key
$$;

revoke all on function jobq.list_limits from public;
grant execute on function jobq.list_limits to jobq_operator, jobq_reader;

comment on function jobq.list_limits is
'Lists the limits of single concurrency keys, with how many jobs of each run.';

-- Purpose: say how many jobs of one key may run at once in a queue, and how many may start in each
-- period, in place of what the queue says for each key.
-- Invariant: one row, last writer wins; holds at once for what starts, and leaves what runs.
-- Raises: 22004, 22023.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: at most so many of its jobs run at once in the queue, 1 to 32767; null
-- means what the queue says.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if num_nulls(put_limit.queue, put_limit.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
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
    perform jobq_private.record_audit(
        'put_limit', put_limit.queue || ' ' || put_limit.concurrency_key,
        concat_ws(', ',
            'max_running ' || put_limit.max_running,
            'rate_limit ' || put_limit.rate_limit || ' in '
            || coalesce(put_limit.rate_period, '1 s')
        )
    );
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.key_limit', _violated);
end
$$;

revoke all on function jobq.put_limit from public;
grant execute on function jobq.put_limit to jobq_operator;

comment on function jobq.put_limit is
'Says how many jobs of one concurrency key may run at once in a queue, and how many may start.';

-- Purpose: let the jobs of a held concurrency key start again.
-- Invariant: at once; what the key's limits say goes on to hold. Raises: 22004.
-- Returns: whether the key was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(queue text, concurrency_key text)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane_id constant uuid := jobq_private.lane_id(queue, concurrency_key);
begin
    if num_nulls(release_key.queue, release_key.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    perform from jobq_private.lane as l
    where l.lane_id = _lane_id
    order by l.priority
    for update;
    update jobq_private.gate as g
    set held_until = '-infinity', hold_reason = null
    where g.gate_id = _lane_id and g.held_until > clock_timestamp();
    if not found then
        return false;
    end if;
    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.lane_id = _lane_id and l.state <> 'open';
    perform jobq_private.wake(array[release_key.queue]);
    perform jobq_private.record_audit(
        'release_key', release_key.queue || ' ' || release_key.concurrency_key, null
    );
    return true;
end
$$;

revoke all on function jobq.release_key from public;
grant execute on function jobq.release_key to jobq_operator;

comment on function jobq.release_key is
'Lets the jobs of a held concurrency key start again, and says whether it was held.';

commit;
