-- Deploy jobq:limit to pg
-- Made by sql/snapshot.py from sql/limit/: edit that.
begin;
set local role jobq_owner;

-- Purpose: after jobs of these lanes have ended: have those opened that were full, and wake
-- their queues.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.call_full_lanes(queues text[], lanes uuid[])
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
    _seen uuid[] := '{}'::uuid[];
    _called text[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _seen := array(
            select u.lane_id
            from unnest(call_full_lanes.lanes) as u (lane_id)
            where pg_try_advisory_xact_lock_shared(
                _closing, jobq_private.lane_slot(u.lane_id)
            )
        );
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select distinct u.queue, u.lane_id
        from unnest(call_full_lanes.queues, call_full_lanes.lanes) as u (queue, lane_id)
        where u.lane_id <> all (_seen)
        or exists (
            select from jobq_private.lane as l
            where l.lane_id = u.lane_id and l.state = 'full'
        )
        returning c.queue
    )
    select array_agg(distinct c.queue) into _called from called as c;
    if _called is not null then
        perform jobq_private.wake(_called);
    end if;
end
$$;

revoke all on function jobq_private.call_full_lanes from public;

comment on function jobq_private.call_full_lanes is
'Has lanes opened that were full and in which jobs have ended.';

-- Purpose: after a job has come into a lane: have the lane opened, unless it is open, or
-- full, so that the end of a job opens it.
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
        and (l.state in ('open', 'full') or l.open_at <= call_lane.run_at);
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

-- Purpose: lease runnable jobs of a queue's lanes to a worker: those of a higher priority
-- than the given one, at which a claim finds jobs without a lane, and half of what it wants
-- at that priority; all where there are none (null).
-- Invariant: bounded in lanes; SKIP LOCKED; what a lane may run is counted after its lock was
-- had, under the lock of the queue's limits. A lane in which nothing was found is closed, and
-- no other is written to. Raises: nothing.
create or replace function jobq_private.claim_lanes(
    queue text, worker text, max_jobs integer, priority integer
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
    _limits constant integer := jobq_private.lock_class('limiting');
    _now constant timestamptz := clock_timestamp();
    _left integer := max_jobs;
    _level integer := 32768;
    _lanes jobq_private.lane[];
    _jobs tid[];
    _places smallint[];
    _idle jobq_private.lane[];
begin
    perform pg_advisory_xact_lock_shared(_limits, hashtext(queue));
    perform jobq_private.open_lanes(queue, _now);
    loop
        select l.priority into _level
        from jobq_private.lane as l
        where l.queue = claim_lanes.queue and l.state = 'open' and l.priority < _level
        order by l.priority desc
        limit 1;
        exit when not found or _level < claim_lanes.priority;
        if _level = claim_lanes.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _lanes := jobq_private.pick_lanes(queue, _level, least(_left, 100));
            exit when _lanes = '{}';
            select b.jobs, b.places, b.idle into _jobs, _places, _idle
            from jobq_private.take_from_lanes(_lanes, _now, _left) as b;
            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim_lanes.worker,
                    place = _places[array_position(_jobs, j.ctid)]
                where j.ctid = any (_jobs)
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at, j.created_at,
                    j.idempotency_key, j.lease, j.delivery_version
            )
            select t.* from taken as t order by t.run_at, t.job_id;
            _left := _left - cardinality(_jobs);
            exit when jobq_private.close_lanes(_idle) = 0 and _jobs = '{}';
        end loop;
        exit when _left = 0;
    end loop;
end
$$;

revoke all on function jobq_private.claim_lanes from public;

comment on function jobq_private.claim_lanes is
'Leases runnable jobs of a queue''s lanes to a worker, in fair turns.';

-- Purpose: close lanes in which a claim has found nothing: as full, until their next job is
-- due, or for good; returns how many were closed.
-- Invariant: the caller holds the rows' locks. The protocol of call_lane(): only under the
-- exclusive lock, and after another look under it; while somebody holds the lock who may be
-- about to add work or room, the lane is only put off. A repeatable snapshot closes none.
-- Raises: nothing.
create or replace function jobq_private.close_lanes(lanes jobq_private.lane[])
returns bigint
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
    _mine uuid[];
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
    with found as materialized (
        select
            l.lane_id, l.priority, w.run_at,
            case
                when l.lane_id <> all (_mine) or w.run_at <= n.now and p.places is distinct from '{}'
                then 'busy'
                when w.run_at is null then 'empty'
                when w.run_at > n.now then 'later'
                else 'full'
            end as state
        from unnest(close_lanes.lanes) as l
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.lane_limit(l.queue, l.concurrency_key)
            as m (max_running)
        cross join lateral jobq_private.free_places(l.lane_id, m.max_running, 1)
            as p (places)
        left join lateral (
            select j.run_at
            from jobq_private.job as j
            where j.queue = l.queue
            and j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ) as w on true
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
                else f.run_at
            end
        from found as f
        where f.state <> 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    )
    select (select count(*) from gone as g) + (select count(*) from closed as c)
    into _closed;
    return _closed;
end
$$;

revoke all on function jobq_private.close_lanes from public;

comment on function jobq_private.close_lanes is
'Closes lanes in which a claim has found nothing.';

-- Purpose: the free places of a lane below its limit, the lowest first, as many as are wanted
-- and may be taken; null without a limit.
-- Invariant: counts what runs, from job_place_idx, with the snapshot of the statement: what
-- ended in whatever way is free. What runs above a limit that was lowered counts too. One
-- row; no SET clause, so that it is inlined, and offset 0, so that it is evaluated once.
-- Raises: nothing.
create or replace function jobq_private.free_places(
    lane_id uuid, max_running integer, wanted integer
)
returns setof smallint[]
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select case when max_running is not null then array(
        select n::smallint
        from pg_catalog.generate_series(
            1, least(max_running, pg_catalog.cardinality(t.places) + wanted)
        ) as n
        where n <> all (t.places)
        order by n
        limit greatest(0, least(wanted, max_running - pg_catalog.cardinality(t.places)))
    ) end
    from (
        select array(
            select j.place
            from jobq_private.job as j
            where j.lane_id = free_places.lane_id and j.place is not null
        ) as places
        offset 0
    ) as t
    offset 0
$$;

revoke all on function jobq_private.free_places from public;

comment on function jobq_private.free_places is
'The free places of a lane below its limit, as many as are wanted and may be taken.';

-- Purpose: whether a claim may find work in lanes of a queue.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.has_lanes(queue text, now timestamptz)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select from jobq_private.lane as l
        where l.queue = has_lanes.queue
        and l.state <> 'full'
        and l.open_at <= has_lanes.now
    )
    or exists (select from jobq_private.lane_call as c where c.queue = has_lanes.queue);
end
$$;

revoke all on function jobq_private.has_lanes from public;

comment on function jobq_private.has_lanes is
'Says whether a claim may find work in lanes of a queue.';

-- Purpose: whether a job of a lane may start.
-- Invariant: a look, no promise. Raises: nothing.
create or replace function jobq_private.has_room(
    queue text, concurrency_key text, lane_id uuid
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select p.places is distinct from '{}'
        from jobq_private.lane_limit(queue, concurrency_key) as m (max_running)
        cross join lateral jobq_private.free_places(lane_id, m.max_running, 1) as p (places)
    );
end
$$;

revoke all on function jobq_private.has_room from public;

comment on function jobq_private.has_room is
'Says whether a job of a lane may start.';

-- Purpose: the lane of a job: its queue and concurrency key; null without a key.
-- Invariant: a hash that nobody can aim at another's, so that a lane is found without a
-- look, and an index on it is small. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_id(queue text, concurrency_key text)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select case when concurrency_key is not null then pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.length(queue) || ':' || queue || concurrency_key, 'UTF8'
        )), 1, 16), 'hex'
    )::uuid end
$$;

revoke all on function jobq_private.lane_id from public;

comment on function jobq_private.lane_id is
'The lane of a queue and a concurrency key.';

-- Purpose: how many jobs of a key may run at once in a queue: its own limit, else what the
-- queue says for each key; null for no limit.
-- Invariant: one row. No SET clause, so that it is inlined, and
-- offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_limit(queue text, concurrency_key text)
returns setof integer
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select coalesce(
        (
            select l.max_running
            from jobq_private.key_limit as l
            where l.queue = lane_limit.queue
            and l.concurrency_key = lane_limit.concurrency_key
        ),
        (
            select q.key_max_running
            from jobq_private.queue as q
            where q.queue = lane_limit.queue
        )
    )
    offset 0
$$;

revoke all on function jobq_private.lane_limit from public;

comment on function jobq_private.lane_limit is
'How many jobs of a key may run at once in a queue.';

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
    if job.state in ('queued', 'retrying') then
        perform jobq_private.call_lane(
            job.lane_id, job.queue, job.concurrency_key, job.priority, job.run_at
        );
        perform jobq_private.call_full_lanes(array[job.queue], array[job.lane_id]);
    end if;
end
$$;

revoke all on function jobq_private.leave_lane from public;

comment on function jobq_private.leave_lane is
'Has a lane opened that an attempt has left.';

-- Purpose: after a change of what the keys of a queue may: give places to what runs without,
-- and open the lanes that were full.
-- Invariant: the exclusive lock waits for the claims that looked at the old limit, and keeps
-- new ones off until the commit; so none starts unseen, and no lane stays closed. Raises:
-- nothing.
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
begin
    perform pg_advisory_xact_lock(_limits, hashtext(queue));
    with numbered as materialized (
        select j.job_id, coalesce((
            select max(o.place) from jobq_private.job as o
            where o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) as place
        from jobq_private.job as j
        cross join lateral jobq_private.lane_limit(j.queue, j.concurrency_key)
            as m (max_running)
        where j.queue = limits_changed.queue
        and j.state = 'running'
        and j.lane_id is not null
        and j.place is null
        and m.max_running is not null
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and n.place <= 32767;

    update jobq_private.lane as l
    set state = 'open'
    where l.queue = limits_changed.queue and l.state = 'full';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';

-- Purpose: when the next lane of a queue may have work; a moment in the past means now.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.next_lane(queue text)
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
    return (
        select l.open_at
        from jobq_private.lane as l
        where l.queue = next_lane.queue and l.state <> 'full'
        order by l.open_at
        limit 1
    );
end
$$;

revoke all on function jobq_private.next_lane from public;

comment on function jobq_private.next_lane is
'Says when the next lane of a queue may have work.';

-- Purpose: open the lanes of a queue that were called for, and those whose time has come.
-- Invariant: bounded; SKIP LOCKED. A call is used up only while nobody closes its lane, by the
-- lock of call_lane(), and under the locks of all rows of the lane: else it stays for the next
-- claim.
-- Raises: nothing.
create or replace function jobq_private.open_lanes(queue text, now timestamptz)
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
    _calls jobq_private.lane_call[];
    _free bigint[];
    _mine jobq_private.lane[];
    _busy uuid[];
begin
    _calls := array(
        select c
        from jobq_private.lane_call as c
        where c.queue = open_lanes.queue
        limit 500
        for update skip locked
    );
    _free := array(
        select c.call_id
        from unnest(_calls) as c
        where pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(c.lane_id))
    );
    _calls := array(
        select _calls[c.ordinality]
        from unnest(_calls) with ordinality as c
        where c.call_id = any (_free)
    );
    if _calls <> '{}' then
        _mine := array(
            select l
            from jobq_private.lane as l
            where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
            for update skip locked
        );
        _busy := array(
            select l.lane_id
            from jobq_private.lane as l
            where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
            and (l.lane_id, l.priority) not in (
                select m.lane_id, m.priority from unnest(_mine) as m
            )
        );
        delete from jobq_private.lane_call as d
        using unnest(_calls) as c
        where d.queue = c.queue and d.call_id = c.call_id and c.lane_id <> all (_busy);

        insert into jobq_private.lane as l (lane_id, priority, queue, concurrency_key)
        select distinct c.lane_id, c.priority, c.queue, c.concurrency_key
        from unnest(_calls) as c
        where c.priority is not null and c.lane_id <> all (_busy)
        order by c.lane_id, c.priority
        on conflict on constraint lane_pkey do update
        set state = 'open', open_at = '-infinity'
        where l.state <> 'open';

        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity'
        from unnest(_mine) as m
        where l.lane_id = m.lane_id and l.priority = m.priority
        and l.state = 'full' and l.lane_id <> all (_busy);
    end if;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity'
    where l.ctid = any (array(
        select t.ctid
        from jobq_private.lane as t
        where t.queue = open_lanes.queue
        and t.state <> 'full'
        and t.open_at > '-infinity'
        and t.open_at <= open_lanes.now
        order by t.open_at
        limit 200
        for update skip locked
    ));
end
$$;

revoke all on function jobq_private.open_lanes from public;

comment on function jobq_private.open_lanes is
'Opens the lanes of a queue that were called for, and those whose time has come.';

-- Purpose: the next open lanes of a queue and priority in the session's turn, locked.
-- Invariant: SKIP LOCKED, so that no claim waits; goes round once. Sessions go round by
-- themselves, each from where it was; a forgotten place, as behind a pooler, only starts
-- the round anew. Raises: nothing.
create or replace function jobq_private.pick_lanes(
    queue text, priority integer, max_lanes integer
)
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

-- Purpose: the place of a job that starts, null where no limit holds.
-- Invariant: no writer gets a place above the limit, and job_place_idx gives each to one. A
-- claim has looked under the locks of the lane and of the queue's limits; whoever starts a job
-- in another way waits for both here. Raises: JQ011.
create or replace function jobq_private.place_in_lane(
    queue text, concurrency_key text, lane_id uuid, place smallint
)
returns smallint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _limit integer;
    _places smallint[];
begin
    if place is null then
        perform pg_advisory_xact_lock_shared(_limits, hashtext(queue));
    end if;
    select m.max_running into _limit
    from jobq_private.lane_limit(queue, concurrency_key) as m (max_running);
    if _limit is null or place between 1 and _limit then
        return case when _limit is not null then place end;
    end if;
    perform from jobq_private.lane as l where l.lane_id = place_in_lane.lane_id for update;
    select p.places into _places
    from jobq_private.free_places(lane_id, _limit, 1) as p (places);
    if _places = '{}' then
        perform jobq_private.raise_error('LIMIT_REACHED', format(
            'queue %s, concurrency_key %s: %s', queue, concurrency_key, _limit
        ));
    end if;
    return _places[1];
end
$$;

revoke all on function jobq_private.place_in_lane from public;

comment on function jobq_private.place_in_lane is
'Gives a job that starts its place, or refuses it.';

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
for each row when (new.key_max_running is distinct from old.key_max_running)
execute function jobq_private.follow_limits();

create or replace trigger queue_birth_limits
after insert on jobq_private.queue
for each row when (new.key_max_running is not null)
execute function jobq_private.follow_limits();

create or replace trigger queue_end_limits
after delete on jobq_private.queue
for each row when (old.key_max_running is not null)
execute function jobq_private.follow_limits();

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.follow_limits();

-- Purpose: of each of these lanes, its next due jobs and the places that they get; with the
-- lanes in which there was none, or no place.
-- Invariant: the caller holds the lanes' locks. One job of each lane while there are lanes
-- for all that is wanted, else equal shares. Raises: nothing.
create or replace function jobq_private.take_from_lanes(
    lanes jobq_private.lane[], now timestamptz, wanted integer
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
    _share constant integer := case cardinality(lanes)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / cardinality(lanes))
    end;
    _batch jobq_private.lane_batch;
begin
    with tried as materialized (
        select l.ordinality as n, p.places, array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = l.queue
            and j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_from_lanes.now
            order by j.run_at, j.job_id
            limit case
                when m.max_running is null then _share else coalesce(cardinality(p.places), 0)
            end
            for update skip locked
        ) as jobs
        from unnest(take_from_lanes.lanes) with ordinality as l
        cross join lateral jobq_private.lane_limit(l.queue, l.concurrency_key)
            as m (max_running)
        cross join lateral jobq_private.free_places(l.lane_id, m.max_running, _share)
            as p (places)
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
        array(select take_from_lanes.lanes[t.n] from tried as t where t.jobs = '{}')
    into _batch;
    return _batch;
end
$$;

revoke all on function jobq_private.take_from_lanes from public;

comment on function jobq_private.take_from_lanes is
'The next due jobs of lanes, with the places that they get.';

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
end
$$;

revoke all on function jobq.delete_limit from public;
grant execute on function jobq.delete_limit to jobq_operator;

comment on function jobq.delete_limit is
'Has one concurrency key follow again what its queue says for each.';

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
    running bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select l.queue, l.concurrency_key, l.max_running, r.running, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral (
        select count(*) as running
        from jobq_private.job as j
        where j.lane_id = jobq_private.lane_id(l.queue, l.concurrency_key)
        and j.place is not null
    ) as r
    where list_limits.queue is null or l.queue = list_limits.queue
    order by l.queue, l.concurrency_key
$$;

revoke all on function jobq.list_limits from public;
grant execute on function jobq.list_limits to jobq_operator, jobq_reader;

comment on function jobq.list_limits is
'Lists the limits of single concurrency keys, with how many jobs of each run.';

-- Purpose: say how many jobs of one key may run at once in a queue, in place of what the
-- queue says for each key.
-- Invariant: one row, last writer wins; holds at once for what starts, and leaves what runs.
-- Raises: 22004, 22023.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: at most so many of its jobs run at once in the queue, 1 to 32767.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer
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
    if num_nulls(put_limit.queue, put_limit.concurrency_key, put_limit.max_running) > 0 then
        perform jobq_private.raise_error(
            'NULL_ARGUMENT', 'queue, concurrency_key and max_running'
        );
    end if;
    insert into jobq_private.key_limit as l (queue, concurrency_key, max_running)
    values (put_limit.queue, put_limit.concurrency_key, put_limit.max_running)
    on conflict on constraint key_limit_pkey do update
    set max_running = excluded.max_running, updated_at = now();
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.key_limit', _violated);
end
$$;

revoke all on function jobq.put_limit from public;
grant execute on function jobq.put_limit to jobq_operator;

comment on function jobq.put_limit is
'Says how many jobs of one concurrency key may run at once in a queue.';

commit;
