-- Deploy jobq:work to pg
-- Made by sql/snapshot.py from sql/work/: edit that.
begin;
set local role jobq_owner;

-- Purpose: whether every live worker of a queue has met this kind and has no handler for it.
-- Invariant: reads only; false where no worker serves the queue, and for functions of the
-- database, which every worker can have run. Raises: nothing.
create or replace function jobq_private.is_unknown(kind text, queue text)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(is_unknown.kind = any(w.except_kinds)), false)
    from jobq_private.worker as w
    where is_unknown.queue = any(w.queues)
    and w.seen_at > now() - interval '1 min'
    and not exists (
        select from jobq_private.kind as k where k.kind = is_unknown.kind and k.run is not null
    )
$$;

revoke all on function jobq_private.is_unknown from public;

comment on function jobq_private.is_unknown is
'Whether no live worker of a queue has a handler for this kind.';

-- Purpose: when the next job of these queues becomes runnable, for an idle worker's sleep.
-- Invariant: one index probe for each queue, and for its priorities a scan that skips to those
-- with a job due earlier (before PostgreSQL 18 a probe for each); paused queues do not count. A
-- moment in the past means that there is work now. Where no lane has work anywhere, many queues
-- are not asked for theirs. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: the instant; one in the past when there is work now, null when none waits.
-- Example: select jobq.next_due('{default}');
create or replace function jobq.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _skips constant boolean := current_setting('server_version_num')::integer >= 180000;
    _has_lanes boolean := true;
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif cardinality(next_due.queues) > 16 then
        _has_lanes := exists (select from jobq_private.lane as l)
            or exists (select from jobq_private.lane_call as c);
    end if;
    return (
        select case when m.due < 'infinity' then greatest(m.due, '0001-01-02 UTC') end
        from (
            select min(
                case when p.is_limited
                    then greatest(d.run_at, jobq_private.queue_opens_at(q.queue)) else d.run_at
                end
            ) as due
            from unnest(next_due.queues) as q (queue)
            left join lateral (
                select j.priority, j.run_at
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and (next_due.except_kinds is null or j.kind <> all(next_due.except_kinds))
                order by j.priority desc, j.run_at
                limit 1
            ) as f on true
            left join lateral (
                with recursive head as (
                    select f.priority, f.run_at
                    where f.run_at is not null
                    union all
                    select h.priority, h.run_at
                    from head as l
                    cross join lateral (
                        select j.priority, j.run_at
                        from jobq_private.job as j
                        where j.queue = q.queue
                        and j.state in ('queued', 'retrying')
                        and j.lane_id is null
                        and j.priority < l.priority
                        and j.run_at < case when _skips then l.run_at else 'infinity' end
                        and (
                            next_due.except_kinds is null
                            or j.kind <> all(next_due.except_kinds)
                        )
                        order by j.priority desc, j.run_at
                        limit 1
                    ) as h
                )
                select min(h.run_at) as run_at from head as h
            ) as e on f.run_at > now()
            cross join lateral (
                select least(
                    f.run_at, e.run_at,
                    case when _has_lanes then jobq_private.next_lane(q.queue, next_due.except_kinds) end
                )
            ) as d (run_at)
            left join lateral (
                select
                    k.paused_at is not null as is_paused,
                    num_nonnulls(k.max_running, k.rate_limit) > 0 as is_limited
                from jobq_private.queue as k
                where k.queue = q.queue and d.run_at is not null
            ) as p on true
            where d.run_at is not null and p.is_paused is not true
        ) as m
    );
end
$$;

revoke all on function jobq.next_due from public;
grant execute on function jobq.next_due to jobq_worker, jobq_reader;

comment on function jobq.next_due is
'Returns when the next job of these queues becomes runnable, or null when none waits.';

-- Purpose: say until the transaction ends that a job is added to a queue, and tell whether any
-- worker sleeps, of whatever queue.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. Queues share 1024 locks, of which 16 more stand for all; W has one more, which every sleeping
-- worker holds: nearly always the only one that is looked at. No SET clause, so that it is
-- inlined. Raises: nothing.
create or replace function jobq_private.announce(queue text, is_wide boolean default false)
returns boolean
language sql
volatile
parallel unsafe
security invoker
as $$
    select pg_catalog.pg_advisory_xact_lock_shared(
        jobq_private.lock_class('producing'), case
            when is_wide then 1024 + (pg_catalog.hashtext(queue) & 15)
            else pg_catalog.hashtext(queue) & 1023
        end
    ) is not null
    and jobq_private.is_held('waiting', 1040)
$$;

revoke all on function jobq_private.announce from public;

comment on function jobq_private.announce is
'Announces a job of a queue until the transaction ends, and says whether any worker sleeps.';

-- Purpose: whether an index scan can skip from one value of a column to the next, as PostgreSQL
-- does from 18 on: so a bound on a later column keeps it from what lies between.
-- Invariant: inlined, so no SET clause. Raises: nothing.
create or replace function jobq_private.can_skip()
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select pg_catalog.current_setting('server_version_num')::integer >= 180000
$$;

revoke all on function jobq_private.can_skip from public;

comment on function jobq_private.can_skip is
'Says whether an index scan can skip from one value of a column to the next.';

-- Purpose: refuse a claim that cannot be meant.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[], worker text, max_jobs integer, except_kinds text[] default null
)
returns void
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if array_ndims(queues) > 1 or array_ndims(except_kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and except_kinds must have one dimension'
        );
    elsif queues is null or array_position(queues, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif array_position(except_kinds, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'except_kinds');
    elsif worker is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'worker');
    elsif max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif length(worker) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'worker must have 1 to 256 characters'
        );
    elsif max_jobs not between 0 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 0 to 10000'
        );
    end if;
end
$$;

revoke all on function jobq_private.check_claim from public;

comment on function jobq_private.check_claim is
'Refuses a claim that cannot be meant.';

-- Purpose: refuse a settlement whose parts do not fit together.
-- Invariant: reads the limits only when there are results that are not small together, and looks
-- into those alone that a limit may refuse. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_results(
    job_ids uuid[], attempts integer[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text[];
begin
    if job_ids is null or attempts is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids and attempts');
    elsif cardinality(job_ids) <> cardinality(attempts) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'job_ids and attempts must have one length'
        );
    elsif results is null then
        return;
    elsif jsonb_typeof(results) <> 'array'
        or jsonb_array_length(results) <> cardinality(job_ids)
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'results must be a JSON array as long as job_ids'
        );
    elsif jobq_private.json_size(results)
        <= least(308, 2 * (jobq_private.defaults()).max_payload_depth)
    then
        return;
    end if;

    select array[c.problem[1], format('result %s: %s', r.n, c.problem[2])] into _problem
    from jsonb_array_elements(results) with ordinality as r (result, n)
    cross join jobq_private.setting as g
    cross join lateral (
        select jobq_private.value_problem(
            r.result, jobq_private.json_size(r.result), g.max_payload_bytes, g.max_payload_depth
        ) as problem
    ) as c
    where coalesce(jobq_private.json_size(r.result), 309)
        > least(308, 2 * g.max_payload_depth, g.max_payload_bytes)
    and c.problem is not null
    limit 1;
    if found then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
end
$$;

revoke all on function jobq_private.check_results from public;

comment on function jobq_private.check_results is
'Refuses a settlement whose parts do not fit together.';

-- Purpose: of many queues those in which a claim may find something, in the same order.
-- Invariant: an index probe for each queue, where looking at each would cost a claim of a
-- thousand empty ones most of its time. A queue in which the session has kept its place counts,
-- since a probe would walk what lies dead before that. Raises: nothing.
create or replace function jobq_private.claimable_queues(queues text[])
returns text[]
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
    -- Without skipping, a bound would have the scan read all that is due later.
    _bound constant timestamptz := case
        when jobq_private.can_skip() then clock_timestamp()
        else 'infinity'
    end;
    _has_lanes constant boolean := exists (select from jobq_private.lane as l)
        or exists (select from jobq_private.lane_call as c);
begin
    return array(
        select q.queue
        from unnest(claimable_queues.queues) with ordinality as q (queue, n)
        where current_setting('jobq.mark_' || (hashtext(q.queue) & 1023), true) <> ''
        or (
            select true
            from jobq_private.job as j
            where j.queue = q.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.run_at <= _bound
            limit 1
        )
        or _has_lanes and (
            (select true from jobq_private.lane_call as c where c.queue = q.queue limit 1)
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.state <> 'full'
                limit 1
            )
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.gate_id is not null
                limit 1
            )
        )
        order by q.n
    );
end
$$;

revoke all on function jobq_private.claimable_queues from public;

comment on function jobq_private.claimable_queues is
'Of many queues those in which a claim may find something.';

-- Purpose: the highest priority below this one that has a job of the queue due by then, or
-- null.
-- Invariant: from PostgreSQL 18 on one scan of job_ready_idx, which skips from priority to
-- priority by itself, and reads on where they lie close together; before, a probe for each
-- priority in use. Raises: nothing.
create or replace function jobq_private.due_priority(
    queue text, priority integer, by_then timestamptz
)
returns integer
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
    -- Without skipping, a bound would have the scan read what lies between.
    _bound constant timestamptz := case
        when jobq_private.can_skip() then due_priority.by_then
        else 'infinity'
    end;
begin
    return (
        with recursive head as (
            select due_priority.priority, 'infinity'::timestamptz as run_at
            union all
            select h.priority, h.run_at
            from head as l
            cross join lateral (
                select j.priority::integer, j.run_at
                from jobq_private.job as j
                where j.queue = due_priority.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and j.priority < l.priority
                and j.run_at <= _bound
                order by j.priority desc, j.run_at
                limit 1
            ) as h
            where l.run_at > due_priority.by_then
        )
        select h.priority from head as h
        where h.run_at <= due_priority.by_then
        limit 1
    );
end
$$;

revoke all on function jobq_private.due_priority from public;

comment on function jobq_private.due_priority is
'Returns the highest priority below this one that has a job due, or null.';

-- Purpose: report failed attempts, but of jobs that another transaction holds.
-- Invariant: waits for nobody. Returns the outcome of each: held for those. Raises: 22004, 22023.
create or replace function jobq_private.fail_free(failures jsonb)
returns table (outcome text, job_id uuid, attempt integer)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _held uuid[];
begin
    select jobq_private.held_jobs(
        array_agg((f.failure ->> 'job_id')::uuid),
        array_agg((f.failure ->> 'attempt')::integer)
    ) into _held
    from jsonb_path_query(fail_free.failures, '$[*] ? (@.type() == "object")') as f (failure);
    if cardinality(_held) > 0 then
        return query
        select 'held', f.job_id, f.attempt
        from jsonb_populate_recordset(null::jobq_private.failure, fail_free.failures) as f
        where f.job_id = any(_held);
    end if;
    return query
    select coalesce(f.state, 'lost'), f.job_id, f.attempt
    from jobq.fail_many(
        case when cardinality(_held) = 0 then fail_free.failures else (
            select coalesce(jsonb_agg(f.failure), '[]')
            from jsonb_array_elements(fail_free.failures) as f (failure)
            where (f.failure ->> 'job_id')::uuid <> all(_held)
        ) end
    ) as f;
end
$$;

revoke all on function jobq_private.fail_free from public;

comment on function jobq_private.fail_free is
'Reports failed attempts, but of jobs that another transaction holds.';

-- Purpose: lock runnable jobs of a queue that have no lane, at the priority of a mark and from it
-- on, in their order; what others have touched only in a second pass (see claim()). What the claim
-- has locked itself (locked) bears another number than its transaction's within a savepoint.
-- Invariant: one range of job_ready_idx. SKIP LOCKED. Hot: its callers pin the search path, and
-- that the index is read in its order. Raises: nothing.
create or replace function jobq_private.find_jobs(
    queue text, mark jobq_private.claim_mark, now timestamptz, max_jobs integer,
    except_kinds text[], is_second boolean, locked tid[]
)
returns tid[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return array(
        select j.ctid
        from jobq_private.job as j
        where j.queue = find_jobs.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and j.priority = mark.priority
        and (j.run_at, j.job_id) >= (mark.run_at, mark.job_id)
        and j.run_at <= find_jobs.now
        and (find_jobs.except_kinds is null or j.kind <> all(find_jobs.except_kinds))
        and (
            is_second
            or j.xmax = '0'
            or j.xmax = pg_current_xact_id_if_assigned()::xid
            or j.ctid = any(locked)
            or age(j.xmax) > (select jobq_private.touched_age(pg_current_snapshot()))
        )
        order by j.run_at, j.job_id
        limit find_jobs.max_jobs
        for update skip locked
    );
end
$$;

revoke all on function jobq_private.find_jobs from public;

comment on function jobq_private.find_jobs is
'Locks runnable jobs of a queue at the priority of a mark.';

-- Purpose: of which of these attempts that run another transaction holds the job, so that a call
-- which ends them would wait for it.
-- Invariant: the others are locked for the caller, by the primary key; waits for nobody. A stale
-- attempt locks nothing, so that it keeps the job from nobody.
-- Raises: nothing.
create or replace function jobq_private.held_jobs(job_ids uuid[], attempts integer[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _free uuid[];
begin
    _free := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.job_id, f.attempt
            from unnest(held_jobs.job_ids, held_jobs.attempts) as f (job_id, attempt)
        )
        and j.lease_expires_at is not null
        for update of j skip locked
    );
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and (j.job_id, j.attempt) in (
            select f.job_id, f.attempt
            from unnest(held_jobs.job_ids, held_jobs.attempts) as f (job_id, attempt)
        )
        and j.lease_expires_at is not null
        and j.job_id <> all(_free)
    );
end
$$;

revoke all on function jobq_private.held_jobs from public;

comment on function jobq_private.held_jobs is
'The jobs of these attempts that another transaction holds; the others are locked.';

-- Purpose: whether a more urgent job is due than this one, the last that a claim has found.
-- Invariant: locks nothing. Hot: its callers pin the search path, and that the index is read in
-- its order. Raises: nothing.
create or replace function jobq_private.is_overtaken(
    queue text, last_found tid, now timestamptz, except_kinds text[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return exists (
        select
        from jobq_private.job as j
        where j.queue = is_overtaken.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and j.priority > (select l.priority from jobq_private.job as l where l.ctid = last_found)
        and j.run_at <= is_overtaken.now
        and (is_overtaken.except_kinds is null or j.kind <> all(is_overtaken.except_kinds))
    );
end
$$;

revoke all on function jobq_private.is_overtaken from public;

comment on function jobq_private.is_overtaken is
'Says whether a more urgent job is due than the last that a claim has found.';

-- Purpose: have the session's next claims of a queue go on where this one ended (at this job, or
-- with null where it began), when three looks at its head in a row were slow: a pinned snapshot
-- keeps their dead entries. After one, those of other sessions may go on at their front.
-- Invariant: the next look is due after twenty times what the last one took, so looks cost a
-- twentieth of the time at most, and what is more urgent or was put back waits no longer than
-- that. A mark is a hint: a wrong one, as behind a pooler,
-- costs a look. Raises: nothing.
create or replace function jobq_private.keep_mark(
    mark jobq_private.claim_mark, run_at timestamptz, job_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
as $$
declare
    _mark jobq_private.claim_mark := mark;
begin
    if keep_mark.run_at is not null then
        _mark.run_at := keep_mark.run_at;
        _mark.job_id := keep_mark.job_id;
    end if;
    if mark.is_look then
        _mark.slow_looks :=
            case when mark.took > interval '0.2 ms' then mark.slow_looks + 1 else 0 end;
        _mark.look_at := case
            when _mark.slow_looks >= 3 and mark.priority is not null
                then clock_timestamp() + greatest(20 * mark.took, interval '10 ms')
        end;
        _mark.is_look := false;
        _mark.took := '0';
    end if;
    perform set_config(
        'jobq.mark_' || (hashtext(mark.queue) & 1023),
        case when _mark.slow_looks > 0 then _mark::text else '' end, false
    );
end
$$;

revoke all on function jobq_private.keep_mark from public;

comment on function jobq_private.keep_mark is
'Has the next claims of the session go on where this one ended.';

-- Purpose: the details of a failure as they are stored: what is too large or too deep to be
-- read again is left out, with the reason, for the failure itself must be told; so is what is
-- secret.
-- Invariant: the limits are those of a payload, read only where there are details.
-- Raises: nothing. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_details(details jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text[];
begin
    if details is not null then
        select jobq_private.value_problem(
            details, jobq_private.json_size(details), g.max_payload_bytes, g.max_payload_depth
        ) into _problem
        from jobq_private.setting as g;
    end if;
    return case
        when _problem is null then jobq_private.redacted_json(details)
        else jsonb_build_object('omitted', _problem[2])
    end;
end
$$;

revoke all on function jobq_private.kept_details from public;

comment on function jobq_private.kept_details is
'Returns the details of a failure as they are stored.';

-- Purpose: the row with which exchange() tells of an attempt that is no new job.
-- Invariant: only job_id and attempt are set. Raises: nothing.
create or replace function jobq_private.lost_job(job_id uuid, attempt integer)
returns jobq.claimed_job
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select row(
        job_id, attempt, null, null, null, null, null, null, null, null, null, null,
        null, null, null
    )::jobq.claimed_job
$$;

revoke all on function jobq_private.lost_job from public;

comment on function jobq_private.lost_job is
'The row that tells of an attempt that is no new job.';

-- Purpose: where a claim goes on in a queue: at the first call (mark null), where the looks at
-- its head are slow, at the front that other sessions share, or where the session's
-- last claim from a mark of its own ended, while keep_mark() says so; else at the head of the
-- next lower priority that has a job due.
-- Invariant: reads one entry of job_ready_idx, where that is due, and how long it took tells
-- what lies dead before it; a claim behind much begins at that entry. priority is null when none
-- is left. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.next_mark(queue text, mark jobq_private.claim_mark)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _started constant timestamptz := clock_timestamp();
    _setting constant text := nullif(
        current_setting('jobq.mark_' || (hashtext(next_mark.queue) & 1023), true), ''
    );
    _kept jobq_private.claim_mark;
    _priority integer := 32768;
    _run_at timestamptz;
    _job_id uuid;
    _took interval;
    _front jobq_private.claim_mark;
begin
    if mark.is_look then
        _priority := mark.priority;
    elsif _setting is not null then
        if mark.queue is null then
            _front := jobq_private.shared_front(next_mark.queue, _started);
            if _front.queue is not null then
                return _front;
            end if;
        end if;
        _kept := _setting::jobq_private.claim_mark;
        if _kept.queue <> next_mark.queue then
            _kept := null;
        elsif mark.queue is null and _kept.look_at > _started then
            return _kept;
        end if;
    end if;

    select j.priority, j.run_at, j.job_id into _priority, _run_at, _job_id
    from jobq_private.job as j
    where j.queue = next_mark.queue
    and j.state in ('queued', 'retrying')
    and j.lane_id is null
    and j.priority < _priority
    order by j.priority desc, j.run_at, j.job_id
    limit 1;
    if _run_at > _started then
        _priority := jobq_private.due_priority(next_mark.queue, _priority, _started);
        _run_at := null;
    end if;
    _took := coalesce(mark.took, '0') + (clock_timestamp() - _started);
    return row(
        next_mark.queue, _priority,
        coalesce(case when _took > interval '0.2 ms' then _run_at end, '-infinity'), _job_id,
        _took, coalesce(mark.slow_looks, _kept.slow_looks, 0), null, true, false,
        _took > interval '0.2 ms' or coalesce(mark.slow_looks, _kept.slow_looks) > 0
    )::jobq_private.claim_mark;
end
$$;

revoke all on function jobq_private.next_mark from public;

comment on function jobq_private.next_mark is
'Says where a claim goes on in a queue.';

-- Purpose: send a notification at commit, unless the session has said: set jobq.notify = off; and
-- tell whether it is sent.
-- Invariant: a transaction that has notified cannot be prepared (PREPARE TRANSACTION), so
-- one that will be says so; polling alone is enough. A notification queue that is half full
-- is left alone too. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.notify(channel text, payload text)
returns boolean
language sql
volatile
parallel unsafe
security invoker
as $$
    select pg_catalog.pg_notification_queue_usage() < 0.5
    and pg_catalog.current_setting('jobq.notify', true) is distinct from 'off'
    and pg_catalog.pg_notify(channel, payload) is not null
$$;

revoke all on function jobq_private.notify from public;

comment on function jobq_private.notify is
'Sends a notification at commit, where the session allows it and there is room.';

-- Purpose: wake an idle worker of a queue when the caller's transaction commits, once announce() has
-- said that some worker sleeps; and tell whether one is woken.
-- Invariant: see announce(). Two conditions, since PostgreSQL makes ready the whole of one that it
-- comes to, and the first is enough for workers of few queues. Hot: its callers pin the search path,
-- and assign what it returns, which costs 5,000 instructions less than perform. Raises: nothing.
create or replace function jobq_private.notify_queue(queue text)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    if jobq_private.is_held('waiting', hashtext(notify_queue.queue) & 1023) then
        return jobq_private.notify('jobq', notify_queue.queue);
    elsif jobq_private.is_held('waiting', 1024 + (hashtext(notify_queue.queue) & 15)) then
        return jobq_private.notify('jobq', notify_queue.queue);
    end if;
    return false;
end
$$;

revoke all on function jobq_private.notify_queue from public;

comment on function jobq_private.notify_queue is
'Notifies sleeping workers of a queue at commit, and nobody when none sleeps.';

-- Purpose: say precisely why an attempt does not hold a job.
-- Invariant: always raises. Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.refuse_attempt(job_id uuid, attempt integer)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
    _attempt integer;
begin
    if refuse_attempt.job_id is null or refuse_attempt.attempt is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id and attempt');
    end if;
    select j.state, j.attempt into _state, _attempt
    from jobq.get_job(refuse_attempt.job_id) as j;
    perform jobq_private.raise_error('LEASE_LOST', format(
        'job_id %s, attempt %s: the job is %s at attempt %s',
        refuse_attempt.job_id, refuse_attempt.attempt, _state, _attempt
    ));
end
$$;

revoke all on function jobq_private.refuse_attempt from public;

comment on function jobq_private.refuse_attempt is
'Raises why an attempt does not hold a job.';

-- Purpose: end failed attempts: retrying while attempts are left, else dead; cancelled
-- where that was asked for meanwhile.
-- Invariant: rows are found by the primary key alone, whatever the statistics say, and
-- locked in the order of their ids, so batches cannot deadlock; only
-- the attempt that holds the lease counts. Attempts are recorded, lanes left, and those that are
-- dead or cancelled moved into the archive, in one step each, as triggers do for a job that changes
-- alone; the archive's foreign key checks the change. An expired lease retries at once, anything
-- else after its backoff.
-- Raises: nothing of its own.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.settle_failures(
    failures jobq_private.failure[], is_expiry boolean
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
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
    _noted constant text := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    _noted_at constant timestamptz := jobq_private.noted_at(_noted);
    _jobs uuid[];
    _attempts integer[];
    _states text[];
    _has_places boolean;
    _outcome text;
begin
    perform set_config('jobq.notes_attempts', _noted, true);
    with held as materialized (
        select
            j.job_id, j.kind, j.queue, j.delivery_version, j.attempt - j.uncounted as spent,
            j.claimed_at, j.worker,
            f.error, f.error_code, f.retry_in, f.details,
            case
                when j.cancel_requested_at is not null then 'cancelled'
                when not coalesce(f.retryable, true) then 'dead'
                when j.attempt - j.uncounted >= j.max_attempts then 'dead'
                when settle_failures.is_expiry and j.expiries + 1 >= _max_expiries
                then 'dead'
                else 'retrying'
            end as outcome,
            num_nonnulls(j.lane_id, j.place) > 0 as has_place
        from unnest(settle_failures.failures) as f
        join jobq_private.job as j
            on j.job_id = any(_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j
    ),
    changed as (
        update jobq_private.job as j
        set
            state = case h.outcome when 'retrying' then h.outcome else j.state end,
            expiries = j.expiries + settle_failures.is_expiry::integer,
            last_error = left(h.error, 512),
            last_error_code = left(h.error_code, 128),
            last_error_details = h.details,
            run_at = case
                when h.outcome <> 'retrying' then j.run_at
                when settle_failures.is_expiry then clock_timestamp()
                else clock_timestamp() + coalesce(h.retry_in, (
                    select jobq.backoff(
                        p.retry_strategy, p.retry_initial_delay, p.retry_max_delay,
                        p.retry_jitter, h.spent
                    )
                    from jobq_private.retry_policy_for(
                        h.kind, h.queue, h.delivery_version
                    ) as p
                ))
            end
        from held as h
        where j.job_id = any(_ids)
        and j.job_id = h.job_id
        returning
            j.job_id, j.attempt, h.outcome, h.has_place, h.claimed_at, h.worker,
            j.last_error_code, j.last_error, j.last_error_details, j.region,
            case when j.delivery_version is not null then j.kind end as endpoint
    ),
    noted as (
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        select
            c.job_id, c.attempt, c.outcome, c.claimed_at, _noted_at, c.worker,
            case when c.outcome <> 'cancelled' then c.last_error_code end,
            case when c.outcome <> 'cancelled' then c.last_error end,
            case when c.outcome <> 'cancelled' then c.last_error_details end,
            c.endpoint, c.region
        from changed as c
    )
    select
        array_agg(c.job_id), array_agg(c.attempt), array_agg(c.outcome), bool_or(c.has_place)
    into _jobs, _attempts, _states, _has_places
    from changed as c;
    perform set_config('jobq.notes_attempts', '', true);
    if _has_places then
        perform jobq_private.leave_lanes(_jobs, _states);
    end if;

    foreach _outcome in array '{dead,cancelled}'::text[] loop
        perform jobq_private.archive_jobs(
            array_agg(s.job_id), array_agg(s.attempt), _outcome, null, false
        )
        from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state)
        where s.state = _outcome
        having count(*) > 0;
    end loop;
    return query
    select s.job_id, s.attempt, s.state
    from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state);
end
$$;

revoke all on function jobq_private.settle_failures from public;

comment on function jobq_private.settle_failures is
'Ends failed attempts as retrying, dead or cancelled.';

-- Purpose: finish what a batch that passes over held jobs has left, at these positions, but is
-- not held after all: by a savepoint of this transaction, or by several that only look.
-- Invariant: what moves here is locked before, so nothing waits.
-- Returns the positions of those that did not move. Raises: nothing of its own.
create or replace function jobq_private.settle_rest(
    job_ids uuid[], attempts integer[], results jsonb, positions bigint[]
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _held constant uuid[] := jobq_private.held_jobs(
        array(select job_ids[n] from unnest(positions) as n),
        array(select attempts[n] from unnest(positions) as n)
    );
    _late constant bigint[] := array(
        select n
        from unnest(positions) as n
        join jobq_private.job as j
            on j.job_id = job_ids[n]
            and j.attempt = attempts[n]
            and j.lease_expires_at is not null
        where j.job_id <> all(_held)
    );
begin
    if _late <> '{}' then
        perform jobq_private.archive_jobs(
            array(select job_ids[n] from unnest(_late) as n),
            array(select attempts[n] from unnest(_late) as n),
            'succeeded',
            (select jsonb_agg(results -> (n - 1)::integer) from unnest(_late) as n),
            false
        );
    end if;
    return array(select n from unnest(positions) as n where n <> all(_late));
end
$$;

revoke all on function jobq_private.settle_rest from public;

comment on function jobq_private.settle_rest is
'Finishes what a batch has left but nobody holds, and returns the positions of the rest.';

-- Purpose: finish attempts as succeeded; results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing. With skip_held, what
-- another transaction holds is left alone; what a savepoint of this one holds is not. While a
-- session's jobs leave no trace, as a setting of the session remembers, they are dropped first.
-- Returns the positions, from 1, of those that did not move; null for none. Hot: its callers
-- pin the search path. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.settle_successes(
    job_ids uuid[], attempts integer[], results jsonb, skip_held boolean
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _left bigint[];
    _gone uuid[];
    _gone_attempts integer[];
begin
    if results is not null or (cardinality(job_ids) = cardinality(attempts)) is not true then
        perform jobq_private.check_results(job_ids, attempts, results);
    end if;
    if current_setting('jobq.drops', true) = 'on' then
        select d.gone, d.gone_attempts into _gone, _gone_attempts
        from jobq_private.drop_jobs(job_ids, attempts, skip_held) as d;
        if cardinality(_gone) = cardinality(job_ids) then
            return null;
        end if;
        perform set_config('jobq.drops', '', false);
    end if;
    _left := jobq_private.archive_jobs(job_ids, attempts, 'succeeded', results, skip_held);
    if _gone is not null then
        _left := array(
            select s.n
            from unnest(job_ids, attempts) with ordinality as s (job_id, attempt, n)
            where s.n = any(_left)
            and (s.job_id, s.attempt) not in (
                select g.* from unnest(_gone, _gone_attempts) as g
            )
            order by s.n
        );
    end if;
    if skip_held and _left is not null then
        _left := jobq_private.settle_rest(job_ids, attempts, results, _left);
    end if;
    return nullif(_left, '{}');
end
$$;

revoke all on function jobq_private.settle_successes from public;

comment on function jobq_private.settle_successes is
'Finishes attempts as succeeded and returns the positions of those that did not move.';

-- Purpose: have the claims of other sessions begin at the front of a queue, which is the job
-- that this one has locked last, while its transaction is open, and until then.
-- Invariant: a hint, in one number that all sessions see at once: milliseconds (modulo 32768),
-- block, line. Queues whose hashes meet take turns. Hot: its callers pin the search path.
-- Raises: nothing.
create or replace function jobq_private.share_front(
    queue text, front tid, until timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _at constant point := front::text::point;
begin
    perform setval(
        format('jobq_private.claim_front_%s', hashtext(queue) & 7)::regclass,
        ((extract(epoch from until) * 1000)::bigint % 32768 << 48)
        | (_at[0]::bigint << 16)
        | _at[1]::bigint
    );
end
$$;

revoke all on function jobq_private.share_front from public;

comment on function jobq_private.share_front is
'Has the claims of other sessions begin where this one has ended.';

-- Purpose: the front of a queue as share_front() has left it, for a session whose looks at the
-- head are slow; null when the look is due.
-- Invariant: the job there must stand in this queue, and have been touched by a transaction
-- that may be open still: so a number that is old, or that of another queue, is none. The last
-- tenth of a second draws by lot which claim looks, the more likely the later, so that not all do
-- so at once. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.shared_front(
    queue text, now timestamptz
)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _packed constant bigint := pg_sequence_last_value(
        format('jobq_private.claim_front_%s', hashtext(queue) & 7)::regclass
    );
    _left constant integer := (
        (_packed >> 48) - (extract(epoch from now) * 1000)::bigint
    ) & 32767;
    _mark jobq_private.claim_mark;
begin
    if _left <= 100 and _left > random() * 100 then
        select
            j.queue, j.priority, j.run_at, j.job_id, null::interval, null::integer,
            shared_front.now + _left * interval '1 ms', false, true, true
        into _mark
        from jobq_private.job as j
        where j.ctid = format('(%s,%s)', _packed >> 16 & 4294967295, _packed & 65535)::tid
        and j.queue = shared_front.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and age(j.xmax) <= age(pg_snapshot_xmin(pg_current_snapshot())::xid);
    end if;
    return _mark;
end
$$;

revoke all on function jobq_private.shared_front from public;

comment on function jobq_private.shared_front is
'The front of a queue that the claims of other sessions have left.';

-- Purpose: start jobs of these kinds in a queue, with and without lanes, by priority, for
-- claim_calls().
-- Invariant: SKIP LOCKED; what is locked is updated by its ctid, since nobody else can move it. The
-- caller has entered the queue, and charges it. Raises: nothing.
create or replace function jobq_private.start_calls(
    queue text, kinds text[], wanted integer, is_limited boolean, has_lanes boolean,
    has_gates boolean
)
returns table (job_id uuid, attempt integer, kind text, payload jsonb)
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
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _left integer := wanted;
    _has_lanes boolean := has_lanes;
    _priority integer;
    _found tid[];
    _taken integer;
begin
    while _left > 0 loop
        _priority := (
            select j.priority
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.run_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.priority desc, j.run_at, j.job_id
            limit 1
            for update skip locked
        );
        if _has_lanes then
            return query
            select c.job_id, c.attempt, c.kind, c.payload
            from jobq_private.claim_lanes(
                start_calls.queue, session_user, _left, _priority, is_limited, has_gates, kinds
            ) as c;
            get diagnostics _taken = row_count;
            _left := _left - _taken;
        end if;
        exit when _priority is null or _left = 0;
        _found := array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority = _priority
            and j.run_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.run_at, j.job_id
            limit _left
            for update skip locked
        );
        if has_gates then
            _found := jobq_private.divert_jobs(_found);
            _has_lanes := true;
        end if;
        return query
        with taken as (
            update jobq_private.job as j
            set
                state = 'running', worker = session_user,
                lane = null,
                place = case when start_calls.is_limited then 1 end
            where j.ctid = any(_found)
            returning j.job_id, j.attempt, j.kind, j.payload, j.run_at
        )
        select t.job_id, t.attempt, t.kind, t.payload
        from taken as t
        order by t.run_at, t.job_id;
        get diagnostics _taken = row_count;
        _left := _left - _taken;
    end loop;
end
$$;

revoke all on function jobq_private.start_calls from public;

comment on function jobq_private.start_calls is
'Starts jobs of kinds that are functions, and returns them in their order.';

-- Purpose: the age of the oldest transaction that may have been open in a snapshot, one of the
-- last 1000; and note (in jobq.touched, until the transaction ends) that a claim has asked, which
-- it does at the first row that others have touched.
-- Invariant: reads nothing. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.touched_age(snapshot pg_snapshot)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return case
        when set_config('jobq.touched', 'on', true) = 'on'
        then least(age(pg_snapshot_xmin(snapshot)::xid), 1000)
    end;
end
$$;

revoke all on function jobq_private.touched_age from public;

comment on function jobq_private.touched_age is
'Returns the age of the oldest transaction that may have been open in a snapshot.';

-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: who has more than 16 queues takes 16 locks that stand for all of them, so that nobody
-- takes all of the server's. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _queue text;
    _is_told boolean;
begin
    foreach _queue in array wake.queues loop
        if jobq_private.announce(_queue, cardinality(wake.queues) > 16) then
            _is_told := jobq_private.notify_queue(_queue);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.wake from public;

comment on function jobq_private.wake is
'Notifies sleeping workers of these queues at commit, and nobody when none sleeps.';

-- Purpose: how long to wait before the attempt after this one.
-- Invariant: fixed: d; linear: d·n; exponential: d·2^(n-1); each then ± jitter·delay, and
-- clamped to max_delay. decorrelated: uniform from d to the lesser of max_delay and d·3^n
-- (after "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
-- Raises: 22004, 22023.
-- Argument strategy: fixed, linear, exponential or decorrelated.
-- Argument initial_delay: the delay before the second attempt; up to a year.
-- Argument max_delay: no delay is longer than this; up to a year.
-- Argument jitter: by which share the delay is changed at random, 0 to 1, before max_delay binds it.
-- Argument attempt: the attempt that failed, from 1.
-- Returns: the delay.
-- Example: select jobq.backoff('exponential', '1 s', '1 h', 0.25, 3);
create or replace function jobq.backoff(
    strategy text,
    initial_delay interval,
    max_delay interval,
    jitter double precision,
    attempt integer
)
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _initial double precision := extract(epoch from initial_delay);
    _max double precision := extract(epoch from max_delay);
    _growth integer := least(attempt, 64);
    _seconds double precision;
begin
    if num_nulls(strategy, initial_delay, max_delay, jitter, attempt) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of backoff');
    elsif attempt < 1 or not coalesce(jitter between 0 and 1, false)
        or _initial not between 0 and 31536000 or _max not between 0 and 31536000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'attempt must be at least 1, jitter from 0 to 1, delays from 0 to 365 days');
    end if;
    case strategy
        when 'fixed' then _seconds := _initial;
        when 'linear' then _seconds := _initial * attempt;
        when 'exponential' then _seconds := _initial * 2::double precision ^ (_growth - 1);
        when 'decorrelated' then
            _seconds := least(_max, _initial * 3::double precision ^ _growth);
            _seconds := _initial + random() * greatest(0, _seconds - _initial);
        else
            perform jobq_private.raise_error('INVALID_ARGUMENT',
                'strategy must be fixed, linear, exponential or decorrelated');
    end case;
    _seconds := _seconds * (1 + jitter * (2 * random() - 1));
    return make_interval(secs => least(_seconds, _max));
end
$$;

revoke all on function jobq.backoff from public;
grant execute on function jobq.backoff
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.backoff is
'Returns how long to wait before the attempt after this one.';

-- Purpose: the listening session of an idle worker says that it is about to sleep.
-- Invariant: true means that every producer that did not see this session wait has
-- committed; false, that one of them may still be open. A worker that does what the answer
-- says misses no enqueue.
-- Inside: W (shared, session) is taken before P is tried. jobq_private.announce() says which
-- locks stand for a queue. Raises: 22004, 22023.
-- Argument queues: the queues that the worker claims from.
-- Returns: true: claim once more, and when that brings nothing, sleep until notified;
-- false: claim, and call again after some milliseconds.
-- Example: select jobq.begin_wait('{default}');
create or replace function jobq.begin_wait(queues text[])
returns boolean
language plpgsql
volatile
parallel unsafe
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
    perform jobq_private.check_claim(begin_wait.queues, 'listener', 0);
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

revoke all on function jobq.begin_wait from public;
grant execute on function jobq.begin_wait to jobq_worker;

comment on function jobq.begin_wait is
'Marks the listening session as asleep on these queues; true when no enqueue is in flight that could have missed it.';

-- Purpose: lease up to max_jobs runnable jobs to a worker.
-- Invariant: SKIP LOCKED, so no two callers get one job and none waits. Queues in the
-- order given; within a queue by priority, then run_at, then id. Jobs due later cost nothing.
-- What waits for jobs that this transaction has ended is released first; what waits for those
-- that others have ended, when there is room left, once a statement.
-- Inside: where an index scan can skip, no lane waits, and the head of the queue is not known to
-- be slow, one scan of job_ready_idx finds what is due at any priority. If that is of more than
-- one, and in all other cases, each priority in use is one range, from next_mark() to now. Where
-- much lies dead before, other sessions are told at once where this one ends: share_front(); and
-- the session's own next claim, where this one did not begin at what others have left. What
-- is locked is updated by its ctid, since nobody else can move it. A row that others have
-- claimed since this snapshot would be locked, found to run, and kept from its worker until
-- the commit: so what was touched by a transaction that may still have been open when the
-- look began, one of the last 1000, is passed over, and taken by a second pass where the
-- first comes back short and has met such a row: then touched_age() was called, once. No lane
-- says that the limits have been looked at.
-- Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits: a worker that claims ahead takes no places for what it does not yet run. null
-- means any number.
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now timestamptz;
    _left integer := claim.max_jobs;
    _queue text;
    _mark jobq_private.claim_mark;
    _run_at timestamptz;
    _job_id uuid;
    -- whether all priorities are looked through at once
    _is_whole boolean;
    _is_second boolean;
    _found tid[];
    -- what a look at all priorities has locked, before the claim went by priority
    _locked tid[];
    _look jobq_private.queue_look;
    _entered integer;
    _spare integer;
    _limited integer;
    _taken integer;
begin
    if (
        claim.max_jobs between 0 and 10000 and length(claim.worker) between 1 and 256
        and array_ndims(claim.queues) = 1 and array_position(claim.queues, null) is null
        and claim.except_kinds is null
    ) is not true then
        perform jobq_private.check_claim(
            claim.queues, claim.worker, claim.max_jobs, claim.except_kinds
        );
    end if;

    if current_setting('jobq.looks', true) = 'on' then
        perform jobq_private.resolve();
    end if;

    foreach _queue in array case
        when cardinality(claim.queues) <= 16 then claim.queues
        else jobq_private.claimable_queues(claim.queues)
    end loop
        _look := jobq_private.look_at(_queue, clock_timestamp());
        continue when _look.is_paused;
        _mark := null;
        if _look.is_limited then
            _spare := _left - jobq_private.enter_queue(
                _queue, least(_left, claim.max_limited), clock_timestamp()
            );
            _left := _left - _spare;
            _entered := _left;
            _limited := claim.max_limited;
        end if;
        _now := clock_timestamp();
        _is_whole := jobq_private.can_skip() and _look.has_lanes is not true
            and coalesce(
                current_setting('jobq.mark_' || (hashtext(_queue) & 1023), true), ''
            ) = '';
        <<marks>>
        while _left > 0 loop
            if not _is_whole then
                _mark := jobq_private.next_mark(_queue, _mark);
                if _look.has_lanes and coalesce(claim.max_limited, 1) > 0 then
                    return query
                    select c.*
                    from jobq_private.claim_lanes(
                        _queue, claim.worker, least(_left, claim.max_limited), _mark.priority,
                        _look.is_limited, _look.has_gates, except_kinds => claim.except_kinds
                    ) as c;
                    get diagnostics _taken = row_count;
                    _left := _left - _taken;
                    claim.max_limited := claim.max_limited - _taken;
                    _run_at := null;
                end if;
                exit when _mark.priority is null or _left = 0;
            end if;
            foreach _is_second in array array[false, true] loop
                exit when _is_second and current_setting('jobq.touched', true) is distinct from 'on';
                if _is_whole then
                    _found := array(
                        select j.ctid
                        from jobq_private.job as j
                        where j.queue = _queue
                        and j.state in ('queued', 'retrying')
                        and j.lane_id is null
                        and j.run_at <= _now
                        and (claim.except_kinds is null or j.kind <> all(claim.except_kinds))
                        and (
                            _is_second
                            or j.xmax = '0'
                            or j.xmax = pg_current_xact_id_if_assigned()::xid
                            or age(j.xmax) > (
                                select jobq_private.touched_age(pg_current_snapshot())
                            )
                        )
                        order by j.priority desc, j.run_at, j.job_id
                        limit _left
                        for update skip locked
                    );
                    if (
                            cardinality(_found) > 1
                            or current_setting('jobq.touched', true) is not distinct from 'on'
                        )
                        and jobq_private.is_overtaken(
                            _queue, _found[cardinality(_found)], _now, claim.except_kinds
                        )
                    then
                        _is_whole := false;
                        _locked := _found;
                        _mark := null;
                        continue marks;
                    end if;
                    if not _is_second
                        and clock_timestamp() - _now
                        > interval '0.2 ms' + cardinality(_found) * interval '0.01 ms'
                    then
                        _mark := jobq_private.next_mark(_queue, null);
                        _mark.took := clock_timestamp() - _now;
                        _mark.is_shared := false;
                        _mark.is_slow := true;
                    end if;
                else
                    _found := jobq_private.find_jobs(
                        _queue, _mark, _now, _left, claim.except_kinds, _is_second, _locked
                    );
                end if;
                continue when _found = '{}';
                if _mark.is_slow then
                    if claim.except_kinds is null then
                        perform jobq_private.share_front(
                            _queue, _found[cardinality(_found)],
                            least(_mark.look_at, _now + interval '100 ms')
                        );
                    end if;
                    if not _mark.is_shared then
                        select j.run_at, j.job_id into _run_at, _job_id
                        from jobq_private.job as j
                        where j.ctid = _found[cardinality(_found)];
                    end if;
                end if;
                if _look.has_gates then
                    _found := jobq_private.divert_jobs(_found);
                    exit marks when _found = '{}';
                end if;

                return query
                with taken as (
                    update jobq_private.job as j
                    set
                        state = 'running', worker = claim.worker,
                        previous_state = j.state, attempt = j.attempt + 1,
                        lane = null,
                        claimed_at = _now, lease_expires_at = _now + j.lease,
                        place = case when _look.is_limited then 1 end
                    where j.ctid = any(_found)
                    returning
                        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                        j.max_attempts, j.timeout, j.lease_expires_at,
                        j.run_at::timestamptz, j.created_at, j.idempotency_key, j.lease,
                        j.delivery_version,
                        j.is_awaited or j.place is not null or j.batch_id is not null
                )
                select t.* from taken as t
                where t.lease_expires_at is not null
                order by t.run_at, t.job_id;
                _left := _left - cardinality(_found);
                exit marks when _left = 0;
            end loop;
            exit when _is_whole;
        end loop;
        if _mark.is_slow and not _mark.is_shared then
            perform jobq_private.keep_mark(_mark, _run_at, _job_id);
            _run_at := null;
        end if;
        if _look.is_limited then
            perform jobq_private.charge_queue(_queue, _entered - _left);
            claim.max_limited := _limited - (_entered - _left);
            _left := _left + _spare;
        end if;
        if _left = 0 then
            return;
        end if;
    end loop;
    if not _look.is_used then
        return;
    end if;
    if exists (
            select from jobq_private.look as l where l.look_at <= clock_timestamp()
        )
        and current_setting('jobq.resolved', true) is distinct from statement_timestamp()::text
        and jobq_private.resolve(patience => '2 s') > 0
    then
        return query select * from jobq.claim(
            claim.queues, claim.worker, _left, claim.max_limited, claim.except_kinds
        );
    end if;
end
$$;

revoke all on function jobq.claim from public;
grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is
'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, run_at and id.';

-- Purpose: lease jobs whose kinds are functions of the database to whoever has logged in, for
-- work().
-- Invariant: SKIP LOCKED. Only functions that the log-in may execute, and whose owner it
-- trusts: itself, the database's owner, or a superuser. So nobody who can declare a kind
-- has another log-in run code of theirs. What limits bind holds its gate or lane until the commit,
-- so that nobody else starts jobs there meanwhile. Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Column run: the schema and the name of the function.
-- Column is_batch: whether it takes the payloads of many jobs at a time.
-- Column retry_on: after which errors a job is tried again, by SQLSTATE or class.
-- Example: select * from jobq.claim_calls('{default}', 10);
create or replace function jobq.claim_calls(queues text[], max_jobs integer default 1)
returns table (
    job_id uuid, attempt integer, kind text, payload jsonb, run text[], is_batch boolean,
    retry_on text[]
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _kinds text[];
    _batches text[];
    _queue text;
    _look jobq_private.queue_look;
    _taken integer;
    _left integer := max_jobs;
begin
    perform jobq_private.check_claim(claim_calls.queues, session_user, claim_calls.max_jobs);
    perform jobq_private.resolve();
    select coalesce(array_agg(k.kind), '{}'), array_agg(k.kind) filter (where f.is_batch)
    into _kinds, _batches
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function(k.run) as f
    where f.may_execute and jobq_private.is_trusted(f.owner, session_user);

    foreach _queue in array claim_calls.queues loop
        exit when _left = 0;
        _look := jobq_private.look_at(_queue, clock_timestamp());
        continue when _look.is_paused;
        return query
        with called as materialized (
            select
                k.kind, parse_ident(k.run) as run,
                coalesce(k.retry_on, '{08,40,53,55,57}') as retry_on,
                coalesce(k.kind = any(_batches), false) as is_batch
            from jobq_private.kind as k
            where k.kind = any(_kinds)
        )
        select s.job_id, s.attempt, s.kind, s.payload, c.run, c.is_batch, c.retry_on
        from jobq_private.start_calls(
            _queue, _kinds,
            case
                when _look.is_limited
                then jobq_private.enter_queue(_queue, _left, clock_timestamp())
                else _left
            end,
            coalesce(_look.is_limited, false), _look.has_lanes, _look.has_gates
        ) with ordinality as s (job_id, attempt, kind, payload, n)
        join called as c on c.kind = s.kind
        order by s.n;
        get diagnostics _taken = row_count;
        if _look.is_limited then
            perform jobq_private.charge_queue(_queue, _taken);
        end if;
        _left := _left - _taken;
    end loop;
end
$$;

revoke all on function jobq.claim_calls from public;
grant execute on function jobq.claim_calls to jobq_worker;

comment on function jobq.claim_calls is
'Leases jobs whose kinds are functions that whoever has logged in may run.';

-- Purpose: lease one named job to a worker, or nothing when it cannot run now.
-- Invariant: SKIP LOCKED; a job that is not due, or whose queue is paused, is not taken. Waits for
-- whoever starts jobs under limits of this one's at the same time.
-- Raises: 22004, 22023.
-- Returns: a row of jobq.claimed_job, or none.
-- Example: select * from jobq.claim_job(:'waiting', 'worker-1');
create or replace function jobq.claim_job(job_id uuid, worker text)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq_private.job;
    _found record;
begin
    if claim_job.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    end if;
    perform jobq_private.check_claim('{}', claim_job.worker, 1);

    select j.* into _job
    from jobq_private.job as j
    where j.job_id = claim_job.job_id
    and j.state in ('queued', 'retrying')
    and j.run_at <= clock_timestamp()
    and not jobq_private.is_paused(j.queue)
    and not exists (select from jobq_private.barriers(j, clock_timestamp(), 1))
    for update skip locked;
    if not found then
        return;
    end if;
    select f.* into _found from jobq_private.find_place(_job) as f;
    if _found.barrier is not null then
        return;
    end if;
    return query
    with taken as (
        update jobq_private.job as j
        set
            state = 'running', worker = claim_job.worker,
            lane = null, place = _found.place
        where j.job_id = _job.job_id
        returning
            j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts,
            j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
            j.idempotency_key, j.lease, j.delivery_version,
            j.is_awaited or j.place is not null or j.batch_id is not null
    )
    select t.* from taken as t where t.lease_expires_at is not null;
    perform jobq_private.charge_job(_job);
end
$$;

revoke all on function jobq.claim_job from public;
grant execute on function jobq.claim_job to jobq_worker;

comment on function jobq.claim_job is
'Leases one named job to a worker, or returns nothing when it cannot run now.';

-- Purpose: finish an attempt as succeeded.
-- Invariant: true once; false when this very attempt has completed the job before, as
-- after a commit whose outcome was unknown; anything else is a lost lease and changes
-- nothing.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Never: INVALID_ARGUMENT.
-- Returns: true; false when this very attempt has completed the job before.
-- Example: select jobq.complete(:'running', 1, '{"message_id": "42"}');
create or replace function jobq.complete(
    job_id uuid, attempt integer, result jsonb default null
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if jobq_private.settle_successes(
        array[complete.job_id], array[complete.attempt],
        case when complete.result is not null then jsonb_build_array(complete.result) end, false
    ) is null then
        return true;
    elsif exists (
        select from jobq.get_job(complete.job_id) as j
        where j.state = 'succeeded' and j.attempt = complete.attempt
    ) then
        return false;
    end if;
    perform jobq_private.refuse_attempt(complete.job_id, complete.attempt);
    return false;
end
$$;

revoke all on function jobq.complete from public;
grant execute on function jobq.complete to jobq_worker;

comment on function jobq.complete is
'Finishes an attempt as succeeded: true once, false when repeated, an error when the lease is lost.';

-- Purpose: finish many attempts as succeeded. results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing and comes back as
-- 'lost', so that one of them does not hold up the rest. Planned once: a plan made for each call
-- looks at every partition of the archive.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated where this very attempt had succeeded before, as
-- complete() answers false; or lost where it no longer held the job.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
    return query
    select s.job_id, s.attempt, case
        when l.n is null then 'succeeded'
        when exists (
            select from jobq_private.job_archive as a
            where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
        )
        then 'repeated'
        else 'lost'
    end
    from unnest(jobq_private.settle_successes(
        complete_many.job_ids, complete_many.attempts, complete_many.results, false
    )) as l (n)
    right join unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
        on s.n = l.n
    order by s.n;
end
$$;

revoke all on function jobq.complete_many from public;
grant execute on function jobq.complete_many to jobq_worker;

comment on function jobq.complete_many is
'Finishes many attempts as succeeded and tells for each whether it still held its job.';

-- Purpose: a worker that saw the request to cancel ends the attempt.
-- Invariant: only where it was asked for, and only by the attempt that holds the lease.
-- Raises: 22004, JQ001, JQ002, JQ003.
-- Example: select jobq.confirm_cancel(:'cancelling', 1);
create or replace function jobq.confirm_cancel(job_id uuid, attempt integer)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _requested_at timestamptz;
begin
    select j.cancel_requested_at into _requested_at
    from jobq_private.job as j
    where j.job_id = confirm_cancel.job_id
    and j.attempt = confirm_cancel.attempt
    and j.lease_expires_at is not null
    for update;
    if not found then
        perform jobq_private.refuse_attempt(confirm_cancel.job_id, confirm_cancel.attempt);
    elsif _requested_at is null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: nobody has asked to cancel it', confirm_cancel.job_id
        ));
    end if;
    update jobq_private.job as j
    set state = 'cancelled'
    where j.job_id = confirm_cancel.job_id;
end
$$;

revoke all on function jobq.confirm_cancel from public;
grant execute on function jobq.confirm_cancel to jobq_worker;

comment on function jobq.confirm_cancel is
'Ends an attempt as cancelled, where that was asked for.';

-- Purpose: for how long a worker of these queues may sleep: until the next job is due.
-- Invariant: a duration by the database's clock, so that no worker's own clock matters;
-- zero or less when there is work now (less by centuries when it is in a lane, which a claim may
-- have passed over), null when none waits. What may be released by a look that has been put off
-- counts as due then, for who sees all queues. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: how long until the next job is due; zero or less when there is work now,
-- null when none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[], except_kinds text[] default null)
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _due constant timestamptz := jobq.next_due(due_in.queues, due_in.except_kinds);
    _now constant timestamptz := clock_timestamp();
begin
    return least(
        case when isfinite(_due) then _due - _now when _due < _now then interval '0' end,
        (
            select min(greatest(
                case when isfinite(l.look_at) then l.look_at - _now end,
                least(greatest(_now - l.created_at, interval '10 ms'), interval '1 s')
            ))
            from jobq_private.look as l
            where jobq_private.worked_queues() is null
        )
    );
end
$$;

revoke all on function jobq.due_in from public;
grant execute on function jobq.due_in to jobq_worker, jobq_reader;

comment on function jobq.due_in is
'Returns how long it is until the next job of these queues becomes runnable, or null when none waits.';

-- Purpose: the listening session of a worker says that it is awake, or that of a client
-- that it waits for no job.
-- Invariant: drops every advisory lock of its session, so the session must be a
-- listener and nothing else. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void
language sql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pg_advisory_unlock_all()
$$;

revoke all on function jobq.end_wait from public;
grant execute on function jobq.end_wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.end_wait is
'Marks the listening session as awake or waiting for no job, so that nobody need notify it.';

-- Purpose: finish a batch and claim the next, in one call and one commit.
-- Invariant: completed and failed attempts are settled before the claim, so that what
-- they free can be claimed. A job that another open transaction has changed or locked holds
-- up none of the others: it comes back as held, and is settled by a later call.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: at most so many new jobs, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits; null means any number.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost for an attempt that no longer held its job; held where another
-- transaction holds it, to be settled again by a later call. Attempts that succeeded have
-- no row.
-- Column attempt: of a claimed job the attempt that begins, else that which was
-- settled.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lost bigint[];
begin
    if (exchange.job_ids, exchange.attempts) is distinct from ('{}'::uuid[], '{}'::integer[])
    then
        _lost := jobq_private.settle_successes(
            exchange.job_ids, exchange.attempts, exchange.results, true
        );
    end if;
    if _lost is not null then
        return query
        select case when j.job_id is null then 'lost' else 'held' end, l.*
        from unnest(_lost) as n
        left join jobq_private.job as j
            on j.job_id = exchange.job_ids[n]
            and j.attempt = exchange.attempts[n]
            and j.lease_expires_at is not null
        cross join lateral jobq_private.lost_job(
            exchange.job_ids[n], exchange.attempts[n]
        ) as l;
    end if;
    if exchange.failures is not null then
        return query
        select f.outcome, l.*
        from jobq_private.fail_free(exchange.failures) as f
        cross join lateral jobq_private.lost_job(f.job_id, f.attempt) as l;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(
        exchange.queues, exchange.worker, exchange.max_jobs, exchange.max_limited,
        exchange.except_kinds
    ) as c;
end
$$;

revoke all on function jobq.exchange from public;
grant execute on function jobq.exchange to jobq_worker;

comment on function jobq.exchange is
'Finishes a batch and claims the next, in one call and one commit.';

-- Purpose: end an attempt as failed.
-- Invariant: retrying while attempts are left and the failure is retryable, else dead; a
-- stale attempt changes nothing. Without retry_in the kind's backoff decides. The error
-- is redacted and cut at 512 characters; details, a JSON object, goes beside it in the
-- attempt.
-- Raises: 22004, 22023, JQ001, JQ003.
-- Argument error_code: a word for the kind of error, cut at 128 characters; for filters
-- and metrics.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    if fail.retry_in not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days'
        );
    elsif jsonb_typeof(fail.details) <> 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'details must be an object');
    end if;
    select s.state into _state
    from jobq_private.settle_failures(array[row(
        fail.job_id, fail.attempt, jobq_private.redacted(fail.error),
        coalesce(fail.error_code, 'ERROR'), fail.retryable, fail.retry_in,
        jobq_private.kept_details(fail.details)
    )::jobq_private.failure], false) as s;
    if not found then
        perform jobq_private.refuse_attempt(fail.job_id, fail.attempt);
    end if;
    return _state;
end
$$;

revoke all on function jobq.fail from public;
grant execute on function jobq.fail to jobq_worker;

comment on function jobq.fail is
'Ends an attempt as failed and returns the new state: retrying, dead or cancelled.';

-- Purpose: end many attempts as failed, given as a JSON array.
-- Invariant: a stale attempt changes nothing. An unknown member is refused, so that no
-- misspelt retryable is passed over.
-- Raises: 22004, 22023.
-- Members failures: fail
-- Column state: the new state: retrying, dead or cancelled; null where the attempt no
-- longer held the job.
-- Example: select * from jobq.fail_many(jsonb_build_array(jsonb_build_object(
--     'job_id', :'running', 'attempt', 1, 'error', 'no such user', 'retryable', false)));
create or replace function jobq.fail_many(failures jsonb)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'job_id', 'attempt', 'error', 'error_code', 'retryable', 'retry_in',
        'details'
    ];
    _failures jobq_private.failure[];
begin
    if fail_many.failures is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'failures');
    elsif jsonb_typeof(fail_many.failures) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'failures must be a JSON array');
    elsif exists (
        select from jsonb_array_elements(fail_many.failures) as e (failure)
        where jsonb_typeof(e.failure) <> 'object' or e.failure - _known <> '{}'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'each failure must be an object with members among %s', _known
        ));
    end if;
    select array_agg(row(
        f.job_id, f.attempt, jobq_private.redacted(f.error),
        coalesce(f.error_code, 'ERROR'), f.retryable, f.retry_in,
        case when f.details is not null then jobq_private.kept_details(f.details) end
    )::jobq_private.failure) into _failures
    from jsonb_populate_recordset(null::jobq_private.failure, fail_many.failures) as f;
    if exists (
        select from unnest(_failures) as f
        where f.retry_in not between '0' and '365 days'
        or jsonb_typeof(f.details) <> 'object'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'retry_in must be from 0 to 365 days, details an object');
    end if;

    return query
    select f.job_id, f.attempt, s.state
    from unnest(_failures) with ordinality
        as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
    left join jobq_private.settle_failures(_failures, false) as s
        on s.job_id = f.job_id and s.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.fail_many from public;
grant execute on function jobq.fail_many to jobq_worker;

comment on function jobq.fail_many is
'Ends many attempts as failed and tells the new state of each, null where the lease was lost.';

-- Purpose: extend the leases of a worker's jobs, and say that the worker lives.
-- Invariant: rows are found by the primary key alone, whatever the statistics say, and
-- locked in the order of their ids; what another open transaction holds waits for the next
-- heartbeat, and holds up none of the others. A lease is never extended past
-- claimed_at + timeout + lease.
-- Raises: 22004, 22023.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument queues: the queues that the worker claims from, for explain() and
-- jobq.worker; null leaves them as they are.
-- Argument except_kinds: kinds that the worker has met and has no handler for, for explain()
-- and health(); null leaves them as they are.
-- Argument release: of what the worker runs, 1 to 200 characters, as the console and
-- jobq.worker show it; null leaves it as it is.
-- Argument stuck: how many of the worker's slots are held by handlers that hang, for explain()
-- and health(); null leaves it as it is.
-- Returns: a row for each job, in the order given.
-- Column outcome: extended; cancel_requested, which is extended too; held, which is not
-- extended since another transaction holds the job: ask again; or lost.
-- Example: select * from jobq.heartbeat('worker-1', array[:'running'::uuid], '{1}', '{default}');
create or replace function jobq.heartbeat(
    worker text, job_ids uuid[], attempts integer[], queues text[] default null,
    except_kinds text[] default null, release text default null, stuck integer default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    perform jobq_private.check_claim('{}', heartbeat.worker, 0, heartbeat.except_kinds);
    if length(heartbeat.release) not between 1 and 200 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'release must have 1 to 200 characters'
        );
    elsif heartbeat.stuck < 0 then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'stuck must not be negative');
    end if;
    perform jobq_private.check_results(heartbeat.job_ids, heartbeat.attempts, null);

    insert into jobq_private.worker as w (worker, queues, except_kinds, release, stuck)
    values (
        heartbeat.worker, coalesce(heartbeat.queues, '{}'),
        coalesce(heartbeat.except_kinds, '{}'), heartbeat.release,
        coalesce(heartbeat.stuck, 0)
    )
    on conflict on constraint worker_pkey do update
    set
        seen_at = now(), queues = coalesce(heartbeat.queues, w.queues),
        except_kinds = coalesce(heartbeat.except_kinds, w.except_kinds),
        release = coalesce(heartbeat.release, w.release),
        stuck = coalesce(heartbeat.stuck, w.stuck);

    return query
    with held as materialized (
        select j.job_id
        from unnest(heartbeat.job_ids, heartbeat.attempts) as f (job_id, attempt)
        join jobq_private.job as j
            on j.job_id = any(heartbeat.job_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j skip locked
    ),
    extended as (
        update jobq_private.job as j
        set heartbeat_at = clock_timestamp()
        from held as h
        where j.job_id = any(heartbeat.job_ids)
        and j.job_id = h.job_id
        returning j.job_id, j.attempt, j.cancel_requested_at
    )
    select f.job_id, f.attempt, case
        when e.job_id is null and exists (
            select from jobq_private.job as j
            where j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        ) then 'held'
        when e.job_id is null then 'lost'
        when e.cancel_requested_at is not null then 'cancel_requested'
        else 'extended'
    end
    from unnest(heartbeat.job_ids, heartbeat.attempts)
        with ordinality as f (job_id, attempt, n)
    left join extended as e on e.job_id = f.job_id and e.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.heartbeat from public;
grant execute on function jobq.heartbeat to jobq_worker;

comment on function jobq.heartbeat is
'Extends the leases of a worker''s jobs and tells which are lost and which are to be cancelled.';

-- Purpose: a worker has been told to wait: start no job of its job's concurrency key for so long,
-- or where it has no key of its kind in its queue.
-- Invariant: what runs goes on, this job too: settle it. Raises: 22004, 22023, JQ001, JQ003.
-- Argument hold_for: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_lane(:'running', 1, '30 s', 'status 429');
create or replace function jobq.hold_lane(
    job_id uuid, attempt integer, hold_for interval, reason text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := clock_timestamp() + hold_for;
    _job record;
begin
    if num_nulls(hold_lane.job_id, hold_lane.attempt, hold_lane.hold_for) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id, attempt and hold_for');
    elsif hold_lane.hold_for not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'hold_for must be from 0 to 365 days'
        );
    end if;
    select j.queue, j.kind, j.concurrency_key, j.lane_id into _job
    from jobq_private.job as j
    where j.job_id = hold_lane.job_id
    and j.attempt = hold_lane.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(hold_lane.job_id, hold_lane.attempt);
    end if;
    if _job.concurrency_key is not null then
        perform jobq_private.store_hold(
            _job.lane_id, _job.queue, null, _until, hold_lane.reason, _job.concurrency_key
        );
    else
        perform jobq_private.store_hold(
            jobq_private.kind_lane_id(_job.queue, _job.kind), _job.queue, _job.kind,
            _until, hold_lane.reason
        );
    end if;
end
$$;

revoke all on function jobq.hold_lane from public;
grant execute on function jobq.hold_lane to jobq_worker;

comment on function jobq.hold_lane is
'Starts no job of a running job''s concurrency key, or else of its kind in its queue, for so long.';

-- Purpose: who works, on what, and how many jobs they hold.
-- Invariant: a worker is live when it was seen within the last minute.
-- Column jobs: how many jobs it runs.
-- Column queues: what it claims from.
-- Column except_kinds: the kinds that it has met and has no handler for.
-- Column release: of what it runs, as it says itself; null where it says nothing.
-- Column stuck: how many of its slots are held by handlers that hang.
-- Column started_at: when it was first heard of.
create or replace view jobq.worker as
select
    w.worker, w.queues, w.started_at, w.seen_at,
    w.seen_at > now() - interval '1 min' as is_live,
    (
        select count(*) from jobq_private.job as j
        where j.state = 'running' and j.worker = w.worker
    ) as jobs,
    w.region, w.except_kinds, w.release, w.stuck
from jobq_private.worker as w;

revoke all on jobq.worker from public;
grant select on jobq.worker to jobq_reader;

comment on view jobq.worker is 'Workers, when they were last seen, and how many jobs they hold.';

-- Purpose: who works, on what, and how many jobs they hold; the rows of jobq.worker.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.worker, by name.
-- Example: select worker, jobs from jobq.list_workers() where is_live;
create or replace function jobq.list_workers()
returns setof jobq.worker
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select w.* from jobq.worker as w order by w.worker
$$;

revoke all on function jobq.list_workers from public;
grant execute on function jobq.list_workers to jobq_operator, jobq_reader;

comment on function jobq.list_workers is
'Lists workers, when they were last seen, and how many jobs they hold.';

-- Purpose: add a line to a job's log.
-- Invariant: append-only; a line is cut at 8192 characters, and has no
-- passwords and the like. It needs no lease, so that an
-- attempt that lost its job can still say so. Raises: 22004, 22023, JQ001.
-- Argument message: the text, cut at 8192 characters.
-- Example: select jobq.log(:'running', 1, 'INFO', 'half of it is done');
create or replace function jobq.log(
    job_id uuid, attempt integer, level text, message text
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(log.job_id, log.attempt, log.level, log.message) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of log');
    elsif log.level not in ('DEBUG', 'INFO', 'WARN', 'ERROR') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'level must be DEBUG, INFO, WARN or ERROR'
        );
    end if;
    if log.attempt not between 0 and (jobq.get_job(log.job_id)).attempt then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'attempt must be one that the job has had'
        );
    end if;
    insert into jobq_private.job_log (job_id, attempt, level, message)
    values (log.job_id, log.attempt, log.level,
        jobq_private.redacted_text(left(log.message, 8192)));
end
$$;

revoke all on function jobq.log from public;
grant execute on function jobq.log to jobq_worker;

comment on function jobq.log is
'Adds a line to a job''s log.';

-- Purpose: give a leased job back since whom it calls has asked to wait, and have all jobs of its
-- concurrency key wait with it; without a key, those of its kind in its queue.
-- Invariant: the attempt is not counted, and the job goes first when the wait is over. A stale
-- attempt changes nothing. Raises: 22004, 22023, JQ001, JQ003.
-- Argument retry_in: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: the new state: queued, or cancelled where that was asked for.
-- Example: select jobq.rate_limited(:'running', 1, '30 s', 'status 429');
create or replace function jobq.rate_limited(
    job_id uuid, attempt integer, retry_in interval, reason text default null
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if rate_limited.retry_in is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'retry_in');
    elsif rate_limited.retry_in not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days'
        );
    end if;
    perform jobq.hold_lane(
        rate_limited.job_id, rate_limited.attempt, rate_limited.retry_in,
        rate_limited.reason
    );
    return jobq.release(rate_limited.job_id, rate_limited.attempt);
end
$$;

revoke all on function jobq.rate_limited from public;
grant execute on function jobq.rate_limited to jobq_worker;

comment on function jobq.rate_limited is
'Gives a leased job back, its attempt not counted, and has all jobs of its concurrency key wait for so long.';

-- Purpose: take back jobs whose lease has expired.
-- Invariant: bounded, oldest lease first, SKIP LOCKED, so any number of callers may run
-- it. The attempt counts; after max_expiries expiries a job is dead, whatever attempts it
-- has left, so that a job which kills its workers stops. Lanes that stayed closed for want of
-- word are opened. Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 1 to 100000.
-- Column state: the new state: retrying, dead or cancelled.
-- Example: select * from jobq.recover();
create or replace function jobq.recover(max_jobs integer default 1000)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _expired jobq_private.failure[];
    _queues text[];
begin
    if recover.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif recover.max_jobs not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 100000'
        );
    end if;

    select
        array_agg(row(
            e.job_id, e.attempt, 'the lease of worker ' || e.worker || ' expired',
            'LEASE_EXPIRED', true, null, null
        )::jobq_private.failure),
        array_agg(distinct e.queue)
    into _expired, _queues
    from (
        select j.job_id, j.attempt, j.worker, j.queue
        from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < _now
        order by j.lease_expires_at
        limit recover.max_jobs
        for update skip locked
    ) as e;

    if _expired is not null then
        return query select s.* from jobq_private.settle_failures(_expired, true) as s;
        perform jobq_private.wake(_queues);
    end if;
    perform jobq_private.reopen_lanes();
end
$$;

revoke all on function jobq.recover from public;
grant execute on function jobq.recover to jobq_worker, jobq_operator;

comment on function jobq.recover is
'Takes back jobs whose lease has expired, and tells their new state.';

-- Purpose: give a leased job back unfinished: shutdown, or a snooze until run_at.
-- Invariant: the attempt is not counted; a stale one changes nothing. Waits for a transaction
-- that holds the job.
-- Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: not before this instant; null means as soon as possible.
-- Returns: the new state: queued, or cancelled where that was asked for.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq.release from public;
grant execute on function jobq.release to jobq_worker;

comment on function jobq.release is
'Gives a leased job back unfinished, its attempt not counted, and returns the new state.';

-- Purpose: give many leased jobs back unfinished: shutdown, recycling.
-- Invariant: the attempt is not counted; a job that was asked to be cancelled becomes
-- cancelled. A stale attempt changes nothing and comes back with state null. A job that
-- another open transaction holds holds up none of the others.
-- Raises: 22004, 22023.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run_at: not before this instant; null means as soon as possible.
-- Column state: queued, or cancelled where that was asked for; held where another
-- transaction holds the job, to be released again by a later call; null where the attempt no
-- longer held the job.
-- Example: select * from jobq.release_many(array[:'running'::uuid], '{1}');
create or replace function jobq.release_many(
    job_ids uuid[], attempts integer[], run_at timestamptz default null
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _queues text[];
begin
    perform jobq_private.check_results(release_many.job_ids, release_many.attempts, null);
    if release_many.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'run_at must be in the years 1 to 9999'
        );
    end if;

    return query
    with held as materialized (
        select j.job_id
        from unnest(release_many.job_ids, release_many.attempts) as f (job_id, attempt)
        join jobq_private.job as j
            on j.job_id = any(release_many.job_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j skip locked
    ),
    released as (
        update jobq_private.job as j
        set
            state = case
                when j.cancel_requested_at is null then 'queued' else 'cancelled'
            end,
            run_at = coalesce(release_many.run_at, j.run_at)
        from held as h
        where j.job_id = any(release_many.job_ids)
        and j.job_id = h.job_id
        returning j.job_id, j.attempt, j.state
    )
    select f.job_id, f.attempt, case
        when r.job_id is null and exists (
            select from jobq_private.job as j
            where j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        ) then 'held'
        else r.state
    end
    from unnest(release_many.job_ids, release_many.attempts)
        with ordinality as f (job_id, attempt, n)
    left join released as r on r.job_id = f.job_id and r.attempt = f.attempt
    order by f.n;

    select array_agg(distinct j.queue) into _queues
    from jobq_private.job as j
    where j.job_id = any(release_many.job_ids) and j.state = 'queued';
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
end
$$;

revoke all on function jobq.release_many from public;
grant execute on function jobq.release_many to jobq_worker;

comment on function jobq.release_many is
'Gives leased jobs back unfinished, their attempts not counted.';

-- Purpose: a worker that stops takes its name off the list.
-- Invariant: leases do not depend on it. Raises: nothing.
-- Example: select jobq.retire_worker('worker-1');
create or replace function jobq.retire_worker(worker text)
returns void
language sql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from jobq_private.worker as w where w.worker = retire_worker.worker
$$;

revoke all on function jobq.retire_worker from public;
grant execute on function jobq.retire_worker to jobq_worker;

comment on function jobq.retire_worker is
'Takes a worker that stops off the list of workers.';

-- Purpose: run the function of a kind for jobs that claim_calls() has leased, for work().
-- Invariant: with the caller's rights. A subtransaction, so that what fails undoes nothing of other
-- jobs, and so here OTHERS is caught. A batch that fails is run again one by one, so that one
-- job of it cannot hold up the others, unless statement_timeout or a cancel stops one: then those
-- after it are given back, as are the jobs of a function that is no longer there. Constraints that
-- are deferred are looked at after each call, the caller's own too. The results of a batch, and one that a limit may refuse, are
-- stored here, where that still undoes the work.
-- Raises: 22023. Never: NULL_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run: the schema and the name of the function.
-- Argument is_batch: whether it takes the payloads of many jobs at a time.
-- Argument payloads: the jobs' payloads, parallel to job_ids; one where is_batch is false.
-- Argument small: of how many bytes the result of one job is left to the caller to store; -1
-- leaves none.
-- Column result: what the function returned for the job.
-- Column state: succeeded where the job is completed already; queued where it was given back; lost where the function itself has
-- given it back or ended it; null where that is left to the caller.
-- Column error_code: the SQLSTATE of the error; null where there was none.
-- Column error: its message.
-- Example: select * from jobq.run_calls('{pg_catalog,jsonb_strip_nulls}', false, array[:'running'::uuid], '{1}', '{"{}"}', 100);
create or replace function jobq.run_calls(
    run text[], is_batch boolean, job_ids uuid[], attempts integer[], payloads jsonb[],
    small integer
)
returns table (
    job_id uuid, attempt integer, result jsonb, state text, error_code text, error text
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _user constant name := current_user;
    _results jsonb[];
    _is_done boolean;
    _is_stopped boolean := false;
    _job record;
    _lost uuid[] := array[]::uuid[];
begin
    if num_nulls(run, is_batch, job_ids, attempts, payloads, small) > 0
        or (cardinality(job_ids), cardinality(attempts)) is distinct from
        (cardinality(payloads), cardinality(payloads))
    then
        raise exception using
            errcode = '22023',
            message = 'an argument has a value that it may not have',
            detail = 'job_ids, attempts and payloads must have one length, and nothing be null',
            hint = 'the detail names the argument and what it may hold',
            constraint = 'INVALID_ARGUMENT';
    end if;
    begin
        if run_calls.is_batch then
            execute format('select %I.%I($1)', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads;
            if cardinality(_results) <> cardinality(run_calls.job_ids) then
                raise exception using
                    errcode = '21000',
                    message = 'the function did not return a result for each job';
            end if;
        else
            execute format('select array[%I.%I($1)]', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads[1];
        end if;
        if current_user <> _user then
            raise exception using
                errcode = '42501',
                message = 'the function has left a role of its own set',
                hint = 'reset it, or declare it with the function: alter function ... set role';
        end if;
        set constraints all immediate;
        _is_done := case
            when run_calls.is_batch or pg_column_size(_results[1]) > 2000 then true
            else coalesce(octet_length(_results[1]::text), 0) > run_calls.small
        end;
        if _is_done then
            _lost := array(
                select c.job_id
                from jobq.complete_many(
                    run_calls.job_ids, run_calls.attempts, to_jsonb(_results)
                ) as c
                where c.outcome <> 'succeeded'
            );
        end if;
    exception
        when others or query_canceled or assert_failure then
            _results := null;
            _is_done := false;
            error_code := sqlstate;
            error := sqlerrm;
    end;
    if error_code in ('3F000', '42883') and to_regprocedure(format(
        '%I.%I(%s)', run_calls.run[1], run_calls.run[2],
        case when run_calls.is_batch then 'jsonb[]' else 'jsonb' end
    )) is null then
        return query
        select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
        from jobq.release_many(run_calls.job_ids, run_calls.attempts) as r;
        return;
    end if;
    return query
    select u.job_id, u.attempt, _results[u.n], case
        when u.job_id = any(_lost) then 'lost'
        when _is_done then 'succeeded'
    end, error_code, error
    from unnest(run_calls.job_ids, run_calls.attempts)
        with ordinality as u (job_id, attempt, n)
    where error_code is null or error_code = '57014' or cardinality(run_calls.job_ids) = 1;
    if found then
        return;
    end if;
    for _job in
        select u.*
        from unnest(run_calls.job_ids, run_calls.attempts, run_calls.payloads)
            as u (job_id, attempt, payload)
    loop
        if _is_stopped then
            return query
            select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
            from jobq.release_many(array[_job.job_id], array[_job.attempt]) as r;
            continue;
        end if;
        select r.*
        into job_id, attempt, result, state, error_code, error
        from jobq.run_calls(
            run_calls.run, true, array[_job.job_id], array[_job.attempt], array[_job.payload],
            run_calls.small
        ) as r;
        return next;
        _is_stopped := coalesce(error_code = '57014', false);
    end loop;
end
$$;

revoke all on function jobq.run_calls from public;
grant execute on function jobq.run_calls to jobq_worker;

comment on function jobq.run_calls is
'Runs the function of a kind for leased jobs, with the caller''s rights, and says what came of each.';

-- Purpose: a handler says how far it is.
-- Invariant: only the attempt that holds the lease.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Example: select jobq.set_progress(:'running', 1, '{"done": 50, "of": 100}');
create or replace function jobq.set_progress(job_id uuid, attempt integer, progress jsonb)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text[] := jobq_private.value_problem(
        set_progress.progress, jobq_private.json_size(set_progress.progress), 65536, 64
    );
begin
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], 'progress: ' || _problem[2]);
    end if;
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

revoke all on function jobq.set_progress from public;
grant execute on function jobq.set_progress to jobq_worker;

comment on function jobq.set_progress is
'Stores how far the running attempt is.';

-- Purpose: run jobs whose kinds are functions of the database, with no worker but the caller.
-- Invariant: with the caller's rights, in the caller's transaction: a job's work and its
-- completion are committed together or not at all. Each job, or batch of a function that takes
-- batches, is a subtransaction: run_calls(). When statement_timeout or a cancel stops one, its
-- jobs fail, and what was leased after it is given back. The kind says after which errors a job
-- is tried again; others are final.
-- Results that no limit can refuse are stored by one statement in the end.
-- Raises: 22004, 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Column state: succeeded, retrying, dead, cancelled, queued where a job was given back, or lost
-- where its function itself has given it back or ended it.
-- Example: select * from jobq.work('{default}', 10);
create or replace function jobq.work(
    queues text[] default '{default}', max_jobs integer default 100
)
returns table (job_id uuid, kind text, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _call record;
    _job record;
    _small constant integer := least(
        308, 2 * (jobq.settings() ->> 'max_payload_depth')::integer
    );
    _is_stopped boolean := false;
    _done uuid[] := array[]::uuid[];
    _kinds text[] := array[]::text[];
    _attempts integer[] := array[]::integer[];
    _results jsonb[] := array[]::jsonb[];
begin
    for _call in
        select
            c.kind, c.run, c.is_batch, c.retry_on,
            array_agg(c.job_id order by c.n) as job_ids,
            array_agg(c.attempt order by c.n) as attempts,
            array_agg(c.payload order by c.n) as payloads
        from jobq.claim_calls(work.queues, work.max_jobs) with ordinality
            as c (job_id, attempt, kind, payload, run, is_batch, retry_on, n)
        group by c.kind, c.run, c.is_batch, c.retry_on, case when not c.is_batch then c.n end
        order by min(c.n)
    loop
        kind := _call.kind;
        if _is_stopped then
            return query
            select r.job_id, _call.kind, coalesce(r.state, 'lost')
            from jobq.release_many(_call.job_ids, _call.attempts) as r;
            continue;
        end if;
        for _job in
            select r.*
            from jobq.run_calls(
                _call.run, _call.is_batch, _call.job_ids, _call.attempts, _call.payloads,
                _small
            ) as r
        loop
            job_id := _job.job_id;
            state := _job.state;
            if _job.error_code is not null then
                _is_stopped := _is_stopped or _job.error_code = '57014';
                state := (
                    select coalesce(f.state, 'lost')
                    from jobq.fail_many(jsonb_build_array(jsonb_build_object(
                        'job_id', job_id, 'attempt', _job.attempt,
                        'error', _job.error, 'error_code', _job.error_code,
                        'retryable', left(_job.error_code, 2) = any(_call.retry_on)
                        or _job.error_code = any(_call.retry_on)
                    ))) as f
                );
            elsif state is null then
                _done := array_append(_done, _job.job_id);
                _kinds := array_append(_kinds, kind);
                _attempts := array_append(_attempts, _job.attempt);
                _results := array_append(_results, _job.result);
                continue;
            end if;
            return next;
        end loop;
    end loop;
    return query
    select c.job_id, _kinds[c.n], replace(c.outcome, 'repeated', 'lost')
    from jobq.complete_many(_done, _attempts, to_jsonb(_results))
        with ordinality as c (job_id, attempt, outcome, n);
end
$$;

revoke all on function jobq.work from public;
grant execute on function jobq.work to jobq_worker;

comment on function jobq.work is
'Runs jobs whose kinds are functions of the database, with the caller''s rights, and says how each ended.';

commit;
