-- Deploy jobq:job to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: drop one partition of the history that is past its retention; return how many were
-- dropped.
-- Invariant: one per call, so that its locks end with the transaction. Jobs that others still
-- need stay, in a partition of their own; with more than 10,000 of them the day stays complete.
-- Waits at most 100 ms for a lock.
create or replace function jobq_private.drop_partitions()
returns bigint language plpgsql set lock_timeout = '100ms' set timezone = 'UTC' as $$
declare
    _most_kept constant integer := 10000;
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _parent text;
    _partition text;
    _day date;
    _kept uuid[];
    _is_whole boolean;
begin
    for _parent, _partition, _day in
        select p.relname, c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        join pg_catalog.pg_class as p on p.oid = i.inhparent
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        order by 3, 2
    loop
        -- Not in the query, which could read the name of any relation as a date.
        exit when _day >= _oldest;
        _kept := '{}';
        if _parent = 'job_archive' then
            _kept := array(
                select n.job_id
                from jobq_private.on_forget(_day, _day + 1, null, _most_kept + 1) as n
            );
            execute format(
                'select count(*) <= $1 from (select from jobq_private.%I limit $1 + 1) as p',
                _partition
            ) into _is_whole using cardinality(_kept);
            continue when _kept <> '{}' and (_is_whole or cardinality(_kept) > _most_kept);
        end if;
        begin
            if _kept <> '{}' then
                -- Nobody redrives or prunes a job of the day while it is copied.
                execute format(
                    'lock table jobq_private.%I in share row exclusive mode', _partition
                );
                execute format(
                    'create table jobq_private.kept (like jobq_private.%I'
                    ' including defaults including constraints)', _parent
                );
                execute format(
                    'insert into jobq_private.kept select p.* from jobq_private.%I as p'
                    ' where p.job_id = any($1)', _partition
                ) using _kept;
            end if;
            execute format('drop table jobq_private.%I', _partition);
            if _kept <> '{}' then
                execute format('alter table jobq_private.kept rename to %I', _partition);
                execute format(
                    'alter table jobq_private.%I attach partition jobq_private.%I'
                    ' for values from (%L) to (%L)', _parent, _partition, _day, _day + 1
                );
            end if;
            return 1;
        exception
            when lock_not_available then
                raise notice using
                    message = 'a history table is in use; the next call removes expired jobs';
        end;
    end loop;
    return 0;
end
$$;

-- Purpose: insert jobs prepared by store_jobs(), wake their queues, and return the ids of those
-- whose dedup key was free. Raises: JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _stored uuid[];
    _queues text[];
begin
    if cardinality(jobs) = 0 then
        return '{}'::uuid[];
    end if;
    with stored as (
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, key_id, expires_at, keep, state, batch_id,
            is_awaited, cost
        )
        select
            n.job_id, n.kind, n.payload, n.queue, n.run_at, n.priority, n.max_attempts,
            n.timeout, n.lease, n.idempotency_key, n.dedup_key,
            case when n.dedup in ('skip', 'replace', 'debounce') then n.dedup end, n.metadata,
            n.schedule_id, n.slot_at, n.delivery_version, n.concurrency_key, n.key_id,
            n.expires_at, n.keep,
            case when num_nonnulls(n.callback_of, n.after) = 0 then 'queued' else 'blocked' end,
            n.batch_id, n.is_awaited, n.cost
        from unnest(insert_jobs.jobs) as n
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning j.job_id, j.queue
    )
    select array(select s.job_id from stored as s), array(select distinct s.queue from stored as s)
    into _stored, _queues;
    if exists (select from unnest(insert_jobs.jobs) as n where n.max_depth is not null) then
        perform jobq_private.check_queue_depth(_stored);
    end if;
    perform jobq_private.wake(_queues);
    return _stored;
end
$$;

-- Purpose: create a history table's partition of one day (UTC), and move rows of that day there
-- from the default partition.
-- Invariant: locks the parent first, so that completions wait there and do not fail on their way
-- to the default partition, and no reader looks only there for rows that were moved. Waits at most
-- 100 ms for a lock.
-- Raises: 55P03 if the lock is not available.
create or replace function jobq_private.make_partition(relation text, day date)
returns boolean language plpgsql set lock_timeout = '100ms' set timezone = 'UTC' as $$
declare
    _column constant text :=
        case relation when 'job_log' then 'logged_at' else 'finished_at' end;
    _name constant text := format('%s_%s', relation, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('jobq_private.' || _name) is not null then
        return false;
    end if;
    execute format('lock table only jobq_private.%I in access exclusive mode', relation);
    execute format(
        'lock table jobq_private.%I in access exclusive mode', relation || '_default'
    );
    execute format(
        'create table jobq_private.%I (like jobq_private.%I'
        ' including defaults including constraints)', _name, relation
    );
    execute format(
        'with moved as (delete from jobq_private.%1$I as d'
        ' where d.%2$I >= %3$L and d.%2$I < %4$L returning d.*)'
        ' insert into jobq_private.%5$I select m.* from moved as m',
        relation || '_default', _column, day, day + 1, _name
    );
    execute format(
        'alter table jobq_private.%I attach partition jobq_private.%I'
        ' for values from (%L) to (%L)', relation, _name, day, day + 1
    );
    return true;
end
$$;

-- Purpose: why a new job is invalid by itself or under its settings: the error's code and detail,
-- or null. Reads no table. Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text[] language plpgsql stable as $$
declare
    _invalid text;
    _problem text[];
begin
    if job.kind is null then
        return array['NULL_ARGUMENT', format('job %s: kind', job.ordinal)];
    end if;
    job.dedup_key := coalesce(job.dedup_key, case when settings.dedup_key is not null
        then jobq_private.payload_key(job.payload, settings.dedup_key) end);
    if job.dedup_key is not null and coalesce(job.dedup, settings.dedup) = 'debounce' then
        job.run_at := coalesce(job.run_at, now() + settings.dedup_period);
    end if;
    _invalid := case
        when length(job.kind) not between 1 and 128 then 'kind must have 1 to 128 characters'
        when length(job.queue) not between 1 and 128 or right(job.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        -- Most jobs have none of these options. PostgreSQL makes an expression ready as a whole.
        when num_nonnulls(
            job.run_at, job.priority, job.max_attempts, job.timeout, job.metadata,
            job.idempotency_key, job.dedup_key, job.dedup, job.concurrency_key, job.expires_at,
            job.after_failure, job.cost
        ) > 0 then jobq_private.invalid_option(job)
    end;
    if _invalid is not null then
        _problem := array['INVALID_ARGUMENT', _invalid];
    elsif job.metadata is not null
        or not jobq_private.is_small(job.payload, settings.max_payload_depth)
    then
        _problem := coalesce(
            jobq_private.value_problem(
                job.payload, settings.max_payload_bytes, settings.max_payload_depth
            ),
            jobq_private.value_problem(
                job.metadata, settings.max_payload_bytes, settings.max_payload_depth,
                coalesce(octet_length(job.payload::text), 0)
            )
        );
    end if;
    if _problem is null and num_nonnulls(
        settings.payload_schema, settings.json_schema, settings.concurrency_key, settings.cost
    ) > 0 then
        _invalid := jobq_private.payload_problem(job, settings);
        _problem := case when _invalid is not null then array['PAYLOAD_INVALID', _invalid] end;
    end if;
    return case when _problem is not null then array[_problem[1], format('job %s%s: %s',
        job.ordinal, case when _problem[1] = 'PAYLOAD_INVALID' then ', kind ' || job.kind end,
        _problem[2]
    )] end;
end
$$;

-- Purpose: the cost that a payload has at a path; null if there is no valid one, as in a payload
-- that was stored before its kind declared the path. Inlined, so no SET clause.
create or replace function jobq_private.payload_cost(payload jsonb, path text[])
returns numeric language sql immutable parallel safe as $$
    select case
        when jsonb_typeof(payload #> path) <> 'number' then null
        when (payload #>> path)::numeric between 0 and 1000000000000
        then (payload #>> path)::numeric
    end
$$;

-- Purpose: delete at most max_rows finished jobs that their kind keeps for less than the global
-- retention; return how many.
-- Invariant: a job that others need is postponed. Locked jobs are left to the next call.
-- Idempotency keys have their own retention, but a kind that allows reuse gets those of failed
-- jobs back, except one that another transaction has locked.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _due uuid[];
    _first timestamptz;
    _last timestamptz;
    _gone jobq_private.ending[];
begin
    select array_agg(d.job_id), min(d.finished_at), max(d.finished_at) into _due, _first, _last
    from (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.prune_at < now()
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ) as d;
    if _due is null then
        return 0;
    end if;
    with needed as materialized (
        select n.* from jobq_private.on_forget(_first, _last, _due, cardinality(_due)) as n
    ),
    put_off as (
        update jobq_private.job_archive as a
        set prune_at = nullif(greatest(n.needed_until, now() + interval '1 s'), 'infinity')
        from needed as n
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id = n.job_id
    ),
    gone as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id not in (select n.job_id from needed as n)
        returning a.job_id, a.kind, a.idempotency_key, a.state
    ),
    reusable as materialized (
        select k.kind, k.idempotency_key
        from gone as g
        join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id
        where g.state <> 'succeeded'
        and (select s.reuse_key_after_failure from jobq_private.settings_for(g.kind, null) as s)
        for update of k skip locked
    ),
    freed as (
        delete from jobq_private.idempotency_key as k
        using reusable as r
        where k.kind = r.kind and k.idempotency_key = r.idempotency_key
    )
    select array_agg(row(
        g.job_id, null, null, null, null, null, null, null, null, null, true
    )::jobq_private.ending) into _gone
    from gone as g;
    perform jobq_private.follow_endings(coalesce(_gone, '{}'));
    return coalesce(cardinality(_gone), 0);
end
$$;

-- Purpose: give a job that has not begun the payload, cost and expires_at of a later call, and
-- postpone it by dedup_period or to the call's run_at, at most by dedup_max_wait in all. False if
-- it has begun or ended meanwhile. Never: ILLEGAL_STATE.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns boolean language plpgsql as $$
begin
    update jobq_private.job as j
    set
        payload = job.payload,
        cost = job.cost,
        run_at = least(job.run_at, j.created_at + job.dedup_max_wait),
        expires_at = job.expires_at
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0;
    if not found then
        return false;
    end if;
    perform jobq_private.on_move(array[put_off.job_id]);
    perform jobq_private.wake(array[job.queue]);
    return true;
end
$$;

-- Purpose: lock dead or cancelled jobs and return them to the live ones: blocked if they must
-- wait again. A job whose idempotency key or dedup key belongs to another job stays.
-- Invariant: the attempt keeps counting, as a fencing token must; failed attempts no longer count
-- against max_attempts, and the job does not expire again. It counts as awaited.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[], latest boolean default false,
    target text default 'queued'
)
returns setof uuid language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off
set enable_mergejoin = off as $$
declare
    _of_parents constant text[] := '{PARENT_FAILED,PARENT_GONE}'::text[];
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _free constant uuid[] := jobq_private.take_redrivable(job_ids, finished_ats);
    _waiting constant uuid[] := jobq_private.on_redrive(_free);
    _back uuid[];
    _queues text[];
begin
    with back as (
        insert into jobq_private.job (
            run_at, uncounted, state, previous_state, is_awaited, waits_since, transition_slot,
            delivery_version, last_error_code, last_error,
            -- columns of jobq_private.job but due_at, expires_at, expiries, claimed_at, heartbeat_at,
            -- lease_expires_at, cancel_requested_at, cancel_reason, worker, slot, reported_cost, progress:
            job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts, priority, region,
            queue, kind, key_id, concurrency_key, cost, batch_id, idempotency_key, dedup_key, dedup,
            last_error_details, keep, metadata, payload
            -- end
        )
        select
            now(), a.attempt,
            case when a.job_id in (select unnest(_waiting)) then 'blocked' else target end, a.state, true, clock_timestamp(), pg_backend_pid() & 1023,
            case
                when not redrive_jobs.latest then a.delivery_version
                else (select k.delivery_version from jobq_private.kind as k where k.kind = a.kind)
            end,
            case when a.last_error_code <> all(_of_parents) then a.last_error_code end,
            case when a.last_error_code <> all(_of_parents) then a.last_error end,
            -- the same of a:
            a.job_id, a.created_at, a.slot_at, a.lease, a.timeout, a.schedule_id, a.attempt, a.max_attempts,
            a.priority, a.region, a.queue, a.kind, a.key_id, a.concurrency_key, a.cost, a.batch_id,
            a.idempotency_key, a.dedup_key, a.dedup, a.last_error_details, a.keep, a.metadata, a.payload
            -- end
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.job_id in (select f from unnest(_free) as f)
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning job_id, queue
    )
    select array_agg(b.job_id), array_agg(distinct b.queue order by b.queue)
    into _back, _queues
    from back as b;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
    and a.finished_at = c.finished_at and a.finished_at between _first and _last
    and a.job_id in (select b from unnest(_back) as b);
    perform jobq_private.on_move(_free);
    if _back is null then
        return;
    end if;
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;

-- Purpose: raise the reason why a job could not be redriven: another job has its idempotency or
-- dedup key. Returns if there is none, for example because another session has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_problem('IDEMPOTENCY_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, idempotency_key %s', k.job_id, k.kind, k.idempotency_key
        )
        from jobq_private.idempotency_key as k
        where k.kind = job.kind
        and k.idempotency_key = job.idempotency_key
        and k.job_id <> job.job_id
    ));
    perform jobq_private.check_problem('DEDUP_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, dedup_key %s', j.job_id, j.kind, j.dedup_key
        )
        from jobq_private.job as j
        where j.kind = job.kind
        and j.dedup_key = job.dedup_key
        and not (j.dedup is null or j.dedup = 'debounce' and j.attempt > 0)
        and j.job_id <> job.job_id
        limit 1
    ));
end
$$;

-- Purpose: store a job, or return the job that its dedup key stands for.
-- Invariant: the unique index decides between concurrent callers; each look follows a lost insert
-- with a new snapshot. After 20 lost inserts, or passes that left the same job in the way, it
-- gives up. Running jobs are never replaced; the slot of a schedule yields to one that runs.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_dedup_job(job jobq_private.new_job)
returns uuid language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _after constant uuid[] := job.after;
    _after_failure constant text := job.after_failure;
    _holder uuid;
    _seen uuid;
    _state text;
    _has_begun boolean;
    _tries integer := 0;
begin
    if job.dedup = 'throttle' then
        insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
        values (job.kind, job.dedup_key, job.job_id, now() + job.dedup_period)
        on conflict on constraint throttle_pkey do update
        set job_id = excluded.job_id, until = excluded.until
        where t.until <= now();
        if not found then
            _holder := t.job_id from jobq_private.throttle as t
            where t.kind = job.kind and t.dedup_key = job.dedup_key;
        end if;
    end if;
    while _holder is null loop
        if job.dedup in ('skip', 'replace', 'debounce') then
            select j.job_id, j.state, j.attempt > 0 into _holder, _state, _has_begun
            from jobq_private.job as j
            where j.kind = job.kind and j.dedup_key = job.dedup_key
            order by
                case when job.dedup = 'debounce' then j.attempt > 0 else j.state <> 'running' end,
                j.dedup is null, j.job_id
            limit 1;
        end if;
        _tries := _tries + coalesce((_holder = _seen)::integer, 0);
        _seen := _holder;
        if _holder is null or job.dedup = 'debounce' and _has_begun then
            -- What has begun keeps its payload: the newest request comes after it.
            if _holder is not null then
                job.after := _holder || array_remove(_after, _holder);
                job.after_failure := 'run,' || coalesce(_after_failure, 'cancel');
            end if;
            if jobq_private.on_store(array[job]) <> '{}' then
                return job.job_id;
            end if;
            job.after := _after;
            job.after_failure := _after_failure;
            _holder := null;
            _tries := _tries + 1;
        elsif job.dedup = 'replace' and _state <> 'running' then
            update jobq_private.job as j
            set state = 'cancelled', cancel_reason = 'replaced by ' || job.job_id
            where j.job_id = _holder and j.state in ('blocked', 'queued', 'retrying');
            _holder := null;
        elsif job.dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, _holder
            ));
        elsif job.dedup = 'debounce' and not jobq_private.put_off(_holder, job) then
            _holder := null;
        end if;
        if _holder is null and _tries >= 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
    end loop;
    -- Who asks again with the idempotency key gets the job that the dedup key stands for.
    update jobq_private.idempotency_key as k
    set job_id = _holder
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key
    and k.job_id = job.job_id;
    return _holder;
end
$$;

-- Purpose: fill in and check new jobs, take their keys, and store them. Returns their ids, or of
-- the jobs that hold their keys, and whether they are new, by ordinal.
-- Invariant: enqueue() stores a plain job without this function, and must make the same of it;
-- tests/pgtap/job/columns.sql compares them. All or none; ordinals are 1 to n. Idempotency keys
-- are locked first, then dedup keys, each by kind and key, so that batches cannot deadlock. A
-- caller that gets an existing job writes an empty message, so that its commit waits for disk and
-- standby: a failover cannot take back the answer to a repeated call. Jobs of schedules were
-- checked when those were declared.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], is_checked boolean default false, out ids uuid[],
    out created boolean[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _jobs jobq_private.new_job[];
    _problems text[];
    _has_keys boolean;
    _has_features boolean;
begin
    select
        array_agg(row(
            j.ordinal, j.kind, coalesce(j.payload, '{}'), s.queue,
            coalesce(
                j.run_at, case when d.dedup = 'debounce' then now() + s.dedup_period end, now()
            ),
            coalesce(j.priority, s.priority), coalesce(j.max_attempts, s.max_attempts),
            coalesce(j.timeout, s.timeout), j.idempotency_key, k.dedup_key, d.dedup,
            coalesce(j.metadata, '{}'), j.schedule_id, j.slot_at,
            coalesce(j.concurrency_key, j.payload #>> s.concurrency_key), j.expires_at,
            nullif(j.after, '{}'), j.after_failure, j.batch_id, j.callback_of,
            coalesce(j.is_awaited, false), coalesce(j.job_id, jobq_private.new_id(s.shard_id)),
            s.lease, s.keep, s.delivery_version, s.is_limited, s.dedup_period, s.dedup_max_wait,
            s.max_depth, null, coalesce(j.cost, jobq_private.payload_cost(j.payload, s.cost))
        )::jobq_private.new_job order by j.ordinal),
        array_agg(p.problem) filter (where p.problem is not null),
        bool_or(num_nonnulls(j.idempotency_key, k.dedup_key) > 0),
        bool_or(s.is_limited or num_nonnulls(
            j.concurrency_key, s.concurrency_key, j.after, j.batch_id, j.callback_of
        ) > 0)
    into _jobs, _problems, _has_keys, _has_features
    from unnest(store_jobs.jobs) as j
    cross join lateral jobq_private.settings_for(j.kind, j.queue) as s
    cross join lateral (
        select coalesce(j.dedup_key, case
            when s.dedup_key is not null then jobq_private.payload_key(j.payload, s.dedup_key)
        end)
    ) as k (dedup_key)
    cross join lateral (
        select case when k.dedup_key is not null then coalesce(j.dedup, s.dedup) end
    ) as d (dedup)
    cross join lateral (
        select case when not is_checked then jobq_private.new_job_problem(j, s) end offset 0
    ) as p (problem);

    -- Raised apart, the error does not name the whole statement above.
    if _problems is not null then
        perform jobq_private.raise_error(_problems[1][1], _problems[1][2]);
    elsif _jobs is null and store_jobs.jobs <> '{}' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobq_private.setting must have its row'
        );
    elsif _has_keys then
        ids := jobq_private.store_keyed_jobs(_jobs);
        created := array(
            select j.job_id = ids[j.ordinal] from unnest(_jobs) as j order by j.ordinal
        );
        if false = any(created) then
            perform pg_logical_emit_message(true, 'jobq', '');
        end if;
        return;
    elsif _has_features then
        ids := jobq_private.on_store(_jobs);
    else
        ids := jobq_private.insert_jobs(_jobs);
    end if;
    created := array_fill(true, array[cardinality(ids)]);
end
$$;

-- Purpose: store jobs prepared by store_jobs(), some of which have keys; return their ids, or of
-- the jobs that hold their keys.
-- Invariant: unique indexes decide between concurrent callers.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_keyed_jobs(jobs jobq_private.new_job[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
set jit = off as $$
declare
    _job jobq_private.new_job;
    _stored uuid[];
    _ids uuid[];
begin
    -- The slot of a schedule is taken once, and holds no key.
    select jobq_private.take_idempotency_keys(
        array_agg(j.job_id), array_agg(j.kind),
        array_agg(case when j.schedule_id is null then j.idempotency_key end)
    ) into _ids
    from unnest(store_keyed_jobs.jobs) as j;
    -- At once all but those whose dedup key a live job or another of these jobs has.
    _stored := jobq_private.on_store(array(
        select f.job
        from (
            select j as job, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(store_keyed_jobs.jobs) as j
            where _ids[j.ordinal] = j.job_id
        ) as f
        -- A limit keeps the planner from reading all live jobs instead.
        left join lateral (
            select true
            from jobq_private.job as l
            where l.kind = (f.job).kind and l.dedup_key = (f.job).dedup_key
            limit 1
        ) as l (is_live) on true
        where (f.job).dedup_key is null or (f.job).dedup = 'enqueue'
        or f.place = 1 and (f.job).dedup <> 'throttle' and l.is_live is null
        order by case when (f.job).dedup_key is not null then (f.job).kind end nulls first,
            (f.job).dedup_key, (f.job).ordinal
    ));
    for _job in
        select j.*
        from unnest(store_keyed_jobs.jobs) as j
        where _ids[j.ordinal] = j.job_id
        and j.job_id not in (select s.job_id from unnest(_stored) as s (job_id))  -- hashed
        order by j.kind, j.dedup_key, j.ordinal
    loop
        _ids[_job.ordinal] := jobq_private.store_dedup_job(_job);
    end loop;
    -- Of two jobs with one idempotency key the second stands for what the first has become.
    return array(
        select coalesce(k.job_id, _ids[j.ordinal])
        from unnest(store_keyed_jobs.jobs) as j
        left join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
            and _ids[j.ordinal] <> j.job_id
        order by j.ordinal
    );
end
$$;

-- Purpose: take the idempotency keys of new jobs, and return the job that each key stands for:
-- the given one if the key was free or missing.
-- Invariant: the primary key of the keys decides between concurrent callers. Keys are locked in
-- the order of kind and key, so batches cannot deadlock. Of several jobs with one key, the first
-- gets it. A free key passes to the new job once, since it then stands for a live job.
create or replace function jobq_private.take_idempotency_keys(
    job_ids uuid[], kinds text[], keys text[]
)
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _taken bigint;
    _holders uuid[];
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        where g.key is not null
        order by g.kind, g.key, g.n
        on conflict on constraint idempotency_key_pkey do nothing;
        get diagnostics _taken = row_count;
        if _taken = cardinality(array_remove(keys, null)) then
            return job_ids;
        end if;
        update jobq_private.idempotency_key as k
        set
            job_id = f.job_id,
            created_at = case when k.job_id = f.job_id then k.created_at else now() end
        from (
            select distinct on (g.kind, g.key) g.*
            from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
            where g.key is not null
            order by g.kind, g.key, g.n
        ) as f
        where k.kind = f.kind and k.idempotency_key = f.key
        and case
            -- a redriven job's own key is locked, so that prune_keys() does not delete it meanwhile
            when k.job_id = f.job_id then k.created_at < now()
            else jobq_private.is_key_free(k.kind, k.job_id, k.created_at)
        end;

        select array_agg(
            case when g.key is null then g.job_id else k.job_id end order by g.n
        )
        into _holders
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key;
        -- a key that another transaction has deleted meanwhile is free
        exit when array_position(_holders, null) is null;
    end loop;
    return _holders;
end
$$;

-- Purpose: lock finished jobs that are to be redriven, take their idempotency keys, and return
-- those that can be redriven: dead or cancelled, and no other job has their key.
-- Invariant: locks them in the order of their ids. Callers pin the planner's settings.
create or replace function jobq_private.take_redrivable(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[] language plpgsql as $$
declare
    _locked uuid[];
    _holders uuid[];
begin
    select array_agg(k.job_id), jobq_private.take_idempotency_keys(
        array_agg(k.job_id), array_agg(k.kind), array_agg(k.idempotency_key)
    )
    into _locked, _holders
    from (
        select a.job_id, a.kind, a.idempotency_key
        from unnest(take_redrivable.job_ids, finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(take_redrivable.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at
            and a.finished_at between (select min(f) from unnest(finished_ats) as f)
            and (select max(f) from unnest(finished_ats) as f)
        where (a.state in ('dead', 'cancelled')) is true
        order by a.job_id
        for update of a
    ) as k
    having count(*) > 0;
    return array(
        select k.job_id from unnest(_locked, _holders) as k (job_id, holder)
        where k.job_id = k.holder
    );
end
$$;

-- Purpose: why a JSON value cannot be stored, beside others of so many bytes: the error's code
-- and detail, or null. Clients could not read it if it were deeper, or held a larger number.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, max_bytes integer, max_depth integer, other_bytes integer default 0
)
returns text[] language plpgsql stable strict as $$
declare
    -- 2,000 bytes of numbers, or fewer when compressed, can be a gigabyte as text.
    _is_wide constant boolean := pg_column_size(value) > 2000
        or pg_column_compression(value) is not null;
    _huge constant text[] := array[
        'PAYLOAD_INVALID', 'a number beyond the range of a double'
    ];
    _size integer;
begin
    if _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    _size := octet_length(value::text) + other_bytes;
    if _size > max_bytes then
        return array['PAYLOAD_TOO_LARGE', format('%s bytes, at most %s', _size, max_bytes)];
    elsif _size > 2 * max_depth
        and jsonb_path_exists(value, format('strict $.**{%s}', max_depth)::jsonpath)
    then
        return array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)];
    elsif _size > 308 and not _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    return null;
end
$$;

-- Purpose: Returns one job, live or archived.
-- Invariant: searches the archive from the day before the id's own time, so that older partitions
-- are skipped and a clock that was set back hides nothing. Raises: 22004, JQ001.
-- Returns: a row of jobq.job.
-- Example: select state, attempts, last_error from jobq.get_job(:'dead');
create or replace function jobq.get_job(job_id uuid)
returns jobq.job language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
declare
    _job jobq.job;
begin
    perform jobq_private.check_given('job_id', num_nulls(get_job.job_id));
    -- By null alone the planner would pass over the days only after it has locked them.
    select j.* into _job
    from jobq.job as j
    where j.job_id = get_job.job_id
    and (j.finished_at is null or j.finished_at = 'infinity');
    if not found then
        select j.* into _job
        from jobq.job as j
        where j.job_id = get_job.job_id
        and j.finished_at
            >= jobq_private.id_time(get_job.job_id) - interval '1 day';
    end if;
    if not found then
        perform jobq_private.refuse_missing(get_job.job_id);
    end if;
    return _job;
end
$$;
grant execute on function jobq.get_job to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_job is 'Returns one job, live or archived.';

-- Purpose: Returns a dead or cancelled job to its queue, and returns its new state.
-- Invariant: its attempts start afresh, but the attempt number continues as the fencing token. It
-- is blocked if it must wait again for a job or for the end of its batch.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument max_attempts: how many attempts it gets from now on, 1 to 10000; null keeps the
-- number.
-- Returns: queued, or blocked if it must wait again.
-- Example: select jobq.redrive(:'dead');
create or replace function jobq.redrive(
    job_id uuid, latest boolean default false, max_attempts integer default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(redrive.job_id);
    _state text;
begin
    perform jobq_private.check_given('latest', num_nulls(redrive.latest));
    perform jobq_private.check_argument(case when redrive.max_attempts not between 1 and 10000
        then 'max_attempts must be from 1 to 10000' end);
    if _job.state in ('dead', 'cancelled') then
        perform from jobq_private.redrive_jobs(
            array[_job.job_id], array[_job.finished_at], redrive.latest
        );
        if found then
            update jobq_private.job as j
            set max_attempts = coalesce(redrive.max_attempts, j.max_attempts)
            where j.job_id = redrive.job_id
            returning j.state into _state;
        else
            perform jobq_private.refuse_redrive(_job);
            -- Somebody else has redriven it meanwhile: say what it is now.
            _job := jobq.get_job(_job.job_id);
        end if;
    end if;
    perform jobq_private.check_problem('ILLEGAL_STATE', case when _state is null then format(
        'job_id %s is %s; dead and cancelled jobs can be redriven', _job.job_id, _job.state
    ) end);
    return _state;
end
$$;
grant execute on function jobq.redrive to jobq_operator;

comment on function jobq.redrive is 'Returns a dead or cancelled job to its queue, and returns its new state.';

lock table jobq_private.job in share row exclusive mode;

-- Purpose: refuse changes of a job's identity, of the payload and cost of a job that has run, and
-- of max_attempts, timeout or lease to an invalid value. Fires only for updates that name one of
-- these columns. Raises: JQ002.
create or replace function jobq_private.job_identity()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if (
        old.job_id, old.kind, old.created_at, old.idempotency_key,
        old.dedup_key, old.dedup, old.schedule_id, old.slot_at,
        old.delivery_version, old.concurrency_key, old.batch_id
    ) is distinct from (
        new.job_id, new.kind, new.created_at, new.idempotency_key,
        new.dedup_key, new.dedup, new.schedule_id, new.slot_at,
        new.delivery_version, new.concurrency_key, new.batch_id
    )
    or ((new.payload, new.cost) is distinct from (old.payload, old.cost)
        and (
            old.attempt > 0 or new.state <> old.state
            or old.state not in ('queued', 'blocked')
        ))
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: id, kind, keys, schedule, batch, delivery_version and created_at never change, nor the payload and cost of a job that has run',
            old.job_id
        ));
    end if;
    if new.max_attempts not between 1 and 10000
        or new.timeout not between interval '1 ms' and interval '365 days'
        or new.lease not between interval '1 s' and interval '1 day'
    then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: max_attempts must be from 1 to 10000, timeout from 1 ms to 365 days, lease from 1 s to 1 day',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, batch_id, cost, max_attempts,
timeout, lease
on jobq_private.job
for each row
execute function jobq_private.job_identity();

drop function if exists jobq_private.bar_redrives;

commit;
