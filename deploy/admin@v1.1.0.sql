-- Deploy jobq:admin to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop routine if exists jobq_private.jobs_ahead;

-- Purpose: parse a change of waiting jobs, and refuse values that no new job could have.
-- Invariant: reads only. Looks up the payload schema of each kind; the depth limit of a
-- queue counts only jobs that come from another queue.
-- Raises: 22004, 22023, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_change(changes jsonb, job_ids uuid[])
returns jobq_private.new_job language plpgsql stable as $$
declare
    _known constant text[] := array[
        'run_at', 'priority', 'queue', 'payload', 'timeout', 'expires_at', 'max_attempts'
    ];
    _set jobq_private.new_job;
    _settings jobq_private.settings;
    _given jsonb;
    _mistyped text;
    _problem text[];
begin
    perform jobq_private.check_given('changes', num_nulls(changes));
    perform jobq_private.check_argument(case
        when jsonb_typeof(changes) <> 'object' or changes - _known <> '{}'
            or jsonb_strip_nulls(changes) = '{}'
        then format('changes must be an object with members among %s, one of them not null', _known)
    end);
    select
        jsonb_object_agg(c.key, c.value),
        min(format('%s must be a JSON %s', c.key, t.type)) filter (
            where c.key <> 'payload' and jsonb_typeof(c.value) <> t.type
        )
    into _given, _mistyped
    from jsonb_each(changes) as c
    cross join lateral (
        select case when c.key in ('priority', 'max_attempts') then 'number' else 'string' end
    ) as t (type)
    where c.value <> 'null';
    perform jobq_private.check_argument(_mistyped);
    _set := (jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', jsonb_build_array(_given), _known
    ))[1];
    for _set.kind in
        select j.kind from jobq_private.job as j where j.job_id = any(check_change.job_ids)
        union
        select '*'
    loop
        _settings := jobq_private.settings_for(_set.kind, _set.queue);
        if _set.payload is null then
            _settings.payload_schema := null;
            _settings.json_schema := null;
        end if;
        _problem := jobq_private.new_job_problem(_set, _settings);
        perform jobq_private.check_problem(_problem[1], _problem[2]);
    end loop;
    if _set.payload is not null then
        perform jobq_private.check_payload_change(check_change.job_ids, _set.payload);
    end if;
    if num_nonnulls(_set.run_at, _set.expires_at) > 0 then
        perform jobq_private.check_argument((
            select 'expires_at must be after run_at: job_id ' || min(j.job_id::text)
            from jobq_private.job as j
            where j.job_id = any(check_change.job_ids)
            and coalesce(_set.run_at, j.run_at) > clock_timestamp()
            and coalesce(_set.expires_at, j.expires_at) <= coalesce(_set.run_at, j.run_at)
            -- one that waits for an event or a paused endpoint may be due before its run_at
            and (_set.run_at is not null or j.run_at < jobq_private.parked_until() and not exists (
                select from jobq_private.waiter as w where w.job_id = j.job_id
            ))
        ));
    end if;
    if _set.queue is not null then
        perform jobq_private.check_queue_depth(check_change.job_ids, _set.queue);
    end if;
    return _set;
end
$$;

-- Purpose: end the pause of a kind, or of every job (*), wake the workers, and record it.
-- Invariant: wakes the queues in which jobs wait, and the patterns of workers, such as tenant-*:
-- a worker may wait on the names that its pattern has matched, on the pattern, or on both.
-- Raises: 42501.
create or replace function jobq_private.end_pause(kind text, action text)
returns void language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off
as $$
begin
    delete from jobq_private.paused_kind as p where p.kind = end_pause.kind;
    if not found then
        -- the login sees the pause, but may not end it
        perform jobq_private.check_problem('ALL_QUEUES_NEEDED', (
            select 'kind ' || p.kind from jobq_private.paused_kind as p
            where p.kind = end_pause.kind
        ));
        return;
    end if;
    perform jobq_private.record_audit(end_pause.action, end_pause.kind);
    perform jobq_private.wake(array(
        select w.queue from jobq_private.waiting_queue as w
        union
        select p.queue
        from jobq_private.worker as w
        cross join lateral unnest(w.queues) as p (queue)
        where right(p.queue, 1) = '*'
    ));
end
$$;

-- Purpose: why the job that goes before a waiting one does not fit into a budget: cheaper jobs
-- wait behind it. For explain(); no row if it fits, or if the given job is the first.
-- Invariant: in the order of claims, by the first entries of their indexes.
create or replace function jobq_private.explain_first(job jobq_private.job)
returns setof text language sql stable set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
    select format('job %s goes first: %s', f.job_id, replace(b.explanation, 'this job', 'it'))
    from (
        (
            select j.*
            from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue and j.state in ('queued', 'retrying')
            and j.due_at <= statement_timestamp()
            order by j.priority desc, j.due_at, j.job_id
            limit 1
        )
        union all
        (
            select j.*
            from jobq_private.job as j
            where j.queue = job.queue and j.key_id = job.key_id and j.priority = job.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= statement_timestamp()
            order by j.run_at, j.job_id
            limit 1
        )
    ) as f
    cross join lateral jobq_private.blocking_limits(f, clock_timestamp()) as b
    where f.job_id <> job.job_id and b.reason = 'budget'
$$;

-- Purpose: which pauses hold up a waiting job, for explain(): of its queue, its kind, every
-- queue, or its endpoint; the events that it waits for; and the release that it needs.
-- Invariant: reads only; no row if nothing is paused, awaited or missing.
create or replace function jobq_private.explain_pauses(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'paused', format('%s since %s%s', p.what, date_trunc('second', p.paused_at),
        ': ' || p.pause_reason)
    from (
        select 'queue ' || q.queue, q.paused_at, q.pause_reason
        from jobq_private.queue as q
        where q.queue = job.queue
        union all
        select case k.kind when '*' then 'every queue' else 'kind ' || k.kind end,
            k.paused_at, k.pause_reason
        from jobq_private.paused_kind as k
        where k.kind in (job.kind, '*')
        union all
        select 'endpoint ' || e.endpoint, e.paused_at, e.pause_reason
        from jobq_private.endpoint as e
        where e.endpoint = job.kind and job.delivery_version is not null
        and e.test_job_id is distinct from job.job_id
    ) as p (what, paused_at, pause_reason)
    where p.paused_at is not null
    union all
    (
        select 'event', format('waits for %s since %s%s',
            coalesce('a person: ' || left(w.question, 200), w.event), date_trunc('second', w.since),
            case when w.deadline < w.since + interval '36000 days'
                then ', until ' || date_trunc('second', w.deadline) end)
        from jobq_private.waiter as w
        where w.job_id = job.job_id
        and w.deadline > clock_timestamp() and job.run_at > clock_timestamp()
        order by w.since
    )
    union all
    select 'release', format(
        'release %s started it; no worker of this release and queue %s was seen in the last minute',
        s.value #>> '{}', job.queue
    )
    from jobq_private.step as s
    where s.job_id = job.job_id and s.name = 'jobq:release' and not exists (
        select from jobq_private.live_worker as w
        where jobq_private.serves(w.queues, job.queue) and w.release = s.value #>> '{}'
    )
$$;

-- Purpose: why a finished, running or blocked job is not waiting, for explain().
-- Invariant: reads only; no row for a waiting job.
create or replace function jobq_private.explain_state(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'finished', format(
        '%s at %s, after %s%s%s', job.state, job.finished_at,
        job.attempts || case job.attempts when 1 then ' attempt' else ' attempts' end,
        coalesce(': ' || case
            when job.state = 'succeeded' then null -- an error is that of an earlier attempt
            when job.state = 'cancelled' and job.cancel_reason is not null
                and starts_with(job.last_error_code, 'PARENT_') is not true
            then job.cancel_reason
            else coalesce(job.last_error_code || ' ', '') || job.last_error
        end, ''),
        case
            when job.state = 'dead' and job.last_error_code = 'LEASE_EXPIRED'
                and job.attempts < job.max_attempts
            then '; max_expiries leases have expired'
        end
    )
    where job.finished_at is not null
    union all
    select 'running', format(
        'attempt %s on %s since %s; lease %s %s%s', job.attempt, job.worker,
        date_trunc('second', job.claimed_at),
        case when job.lease_expires_at < clock_timestamp()
            then 'expired (maintain() will end the attempt)' else 'until' end,
        date_trunc('second', job.lease_expires_at),
        '; cancellation requested at ' || date_trunc('second', job.cancel_requested_at)
            || coalesce(': ' || job.cancel_reason, '')
    )
    where job.state = 'running'
    union all
    select b.* from jobq_private.explain_blocked(job) as b where job.state = 'blocked'
$$;

-- Purpose: delete jobs, live or finished, with all their records.
-- Invariant: the caller has locked their rows. Jobs that wait for them, or have called
-- them, are checked again, and so are their batches, which cannot succeed without them. "is true"
-- prevents the use of partial indexes, which would scan the array for each entry.
create or replace function jobq_private.forget_jobs(job_ids uuid[])
returns void language sql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
    select jobq_private.follow_endings(array_agg(row(
        i.job_id, null, null, null, null, null, null, null, null, null, true
    )::jobq_private.ending))
    from unnest(forget_jobs.job_ids) as i (job_id);
    insert into jobq_private.pending (about, id)
    select 'child', e.child
    from jobq_private.edge as e where e.parent = any(forget_jobs.job_ids) and e.is_open
    union
    select 'call', e.parent
    from jobq_private.edge as e
    where e.parent = any(forget_jobs.job_ids) and e.after_failure in ('call', 'detach')
    union
    select 'batch', j.batch_id
    from jobq_private.job as j
    where j.job_id = any(forget_jobs.job_ids) and (j.batch_id is not null) is true;
    update jobq_private.batch as b
    set has_lost = true
    where b.ended_at is null and not b.has_lost and b.batch_id in (
        select j.batch_id from jobq_private.job as j
        where j.job_id = any(forget_jobs.job_ids)
        union all
        select a.batch_id from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids) and (a.state <> 'succeeded') is true
    );
    -- The end of a called job still looks for callers: a fork may be about to take its edge over.
    delete from jobq_private.edge as e
    where e.child = any(forget_jobs.job_ids) and not (
        e.after_failure in ('call', 'detach')
        and (select true from jobq_private.job as j where j.job_id = e.parent) is true
    );
    delete from jobq_private.node as n where n.job_id = any(forget_jobs.job_ids);
    delete from jobq_private.event as e where e.job_id = any(forget_jobs.job_ids);
    with live as (
        delete from jobq_private.job as j where j.job_id = any(forget_jobs.job_ids)
        returning j.job_id, j.kind, j.idempotency_key, j.dedup_key
    ),
    ended as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids)
        returning a.job_id, a.kind, a.idempotency_key, a.dedup_key
    ),
    gone as (select * from live union all select * from ended),
    throttles as materialized (
        select t.kind, t.dedup_key
        from jobq_private.throttle as t
        join gone as g on t.kind = g.kind and t.dedup_key = g.dedup_key and t.job_id = g.job_id
        order by t.kind, t.dedup_key  -- as enqueue_many() locks them
        for update of t
    ),
    opened as (
        delete from jobq_private.throttle as t
        using throttles as o
        where t.kind = o.kind and t.dedup_key = o.dedup_key
    ),
    -- More idempotency keys can stand for a job with a dedup key. No index leads from it to them: read
    -- those made since.
    aliases as (
        delete from jobq_private.idempotency_key as k
        using gone as g
        where k.created_at > (
            select min(jobq_private.id_time(d.job_id)) - interval '1 day'
            from gone as d where d.dedup_key is not null
        )
        and k.kind = g.kind and k.job_id = g.job_id and g.dedup_key is not null
        and k.idempotency_key is distinct from g.idempotency_key
    )
    delete from jobq_private.idempotency_key as k
    using gone as g
    where k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id;
    select jobq_private.tell_ended(forget_jobs.job_ids)
    where jobq_private.is_locked('awaiting', 0)
$$;

-- Purpose: how many jobs of a queue are claimed before the given one; of a key, if it has one.
-- Invariant: in the order of claim(); two ranges of job_ready_idx or job_key_idx, each counted up
-- to 10,001. The job itself is due, so jobs before it need no comparison with now: a scan with
-- two upper bounds on due_at would continue to the later one.
create or replace function jobq_private.jobs_ahead(job jobq_private.job)
returns bigint language sql stable set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
    select count(*)
    from (
        (
            select from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority = job.priority
            and (j.due_at, j.job_id) < (coalesce(job.due_at, job.run_at), job.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority > job.priority
            and j.due_at <= statement_timestamp()
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = job.queue
            and j.key_id = job.key_id
            and j.state in ('queued', 'retrying')
            and j.priority = job.priority
            and (j.run_at, j.job_id) < (job.run_at, job.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = job.queue
            and j.key_id = job.key_id
            and j.state in ('queued', 'retrying')
            and j.priority > job.priority
            and j.run_at <= statement_timestamp()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;

-- Purpose: a time in ISO 8601 with the offset of a zone.
-- Invariant: depends only on the zone database; uses UTC if the server no longer has
-- the zone, so that such a schedule can still be shown.
create or replace function jobq_private.moment_in(moment timestamptz, time_zone text)
returns text language plpgsql stable as $$
declare
    _shown timestamp;
    _ahead interval;
begin
    _shown := moment at time zone time_zone;
    _ahead := _shown - (moment at time zone 'UTC');
    return rtrim(rtrim(to_char(_shown, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')
        || case when _ahead < interval '0' then '-' else '+' end
        || to_char(greatest(_ahead, -_ahead), 'HH24:MI');
exception
    when invalid_parameter_value then
        return jobq_private.moment_in(moment, 'UTC');
end
$$;

-- Purpose: the objects of jobq's schemas, each with a statement that creates it, or its
-- properties, in an order in which they can be created.
-- Invariant: reads only. Omits partitions, row security and storage parameters.
-- Argument prefix: the common prefix of the names of the schemas.
create or replace function jobq_private.schema_objects(prefix text default 'jobq')
returns table (object text, definition text, nth bigint) language sql stable
set search_path = pg_catalog, pg_temp
-- in which definitions are printed
set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC'
set standard_conforming_strings = on set quote_all_identifiers = off as $$
    with space as (
        select n.oid, n.nspname from pg_namespace as n
        where n.nspname ~ format('^%s(_http|_internal|_private)?$', prefix)
    ),
    relation as (
        select c.*, c.oid::regclass::text as name,
            case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end as kind
        from pg_class as c
        join space as s on s.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'S', 'c') and not c.relispartition
    ),
    found (rank, made, object, definition) as (
        select 1, s.oid, 'schema ' || s.nspname, null from space as s
        union all
        select 1, r.oid, format('%s %s', r.kind, r.name),
            concat_ws(' ', r.kind, r.relpersistence::text, pg_get_partkeydef(r.oid))
        from relation as r
        where r.kind <> 'view'
        union all
        select 1, t.oid, format('type %s', t.oid::regtype), concat_ws(
            ' ', t.typtype::text, format_type(t.typbasetype, t.typtypmod), (
                select string_agg(pg_get_constraintdef(k.oid), ' ' order by k.conname)
                from pg_constraint as k
                where k.contypid = t.oid
            )
        )
        from pg_type as t
        join space as s on s.oid = t.typnamespace
        where t.typtype in ('d', 'e')
        union all
        select 1, r.oid, format('column %s.%I', r.name, a.attname), concat_ws(
            ' ', format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
            a.attidentity::text, a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid),
            case when r.kind = 'type' then a.attnum end
        )
        from relation as r
        join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where r.kind in ('table', 'type')
        union all
        select 3, p.oid, format('routine %s', p.oid::regprocedure),
            pg_get_functiondef(p.oid)
        from pg_proc as p
        join space as s on s.oid = p.pronamespace
        union all
        select 3, r.oid, 'view ' || r.name, format('create or replace view %s%s as %s', r.name,
            ' with (' || array_to_string(r.reloptions, ', ') || ')', pg_get_viewdef(r.oid))
        from relation as r
        where r.kind = 'view'
        union all
        select 4, t.oid, format('trigger %I on %s', t.tgname, r.name), pg_get_triggerdef(t.oid)
            || case when t.tgenabled not in ('O', 'A') then ' -- is disabled' else '' end
        from relation as r
        join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal
        union all
        select 5, i.indexrelid, 'index ' || i.indexrelid::regclass,
            replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
            || case when not i.indisvalid then ' -- is invalid' else '' end
        from relation as r
        join pg_index as i on i.indrelid = r.oid
        where not exists (
            select from pg_constraint as k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
        )
        union all
        select 6, k.oid, format('constraint %I on %s', k.conname, r.name),
            format('alter table %s add constraint %I %s', r.name, k.conname, pg_get_constraintdef(k.oid))
            || case when exists (
                select from pg_trigger as t where t.tgconstraint = k.oid and t.tgenabled not in ('O', 'A')
            ) then ' -- is disabled' else '' end
        from relation as r
        join pg_constraint as k on k.conrelid = r.oid and k.contype not in ('n', 't')
        union all
        select a.rank, a.made, a.object, a.definition from jobq_private.schema_access(prefix) as a
    )
    select f.object, f.definition, row_number() over (order by f.rank, f.made, f.object)
    from found as f
$$;

-- Purpose: For tests: moves waiting jobs into the past, as if this much time had passed.
-- Invariant: changes run_at, expiries and deadlines of waits; not schedules and leases, nor
-- deliveries that wait for a paused endpoint. No role is granted it, so only the owner of
-- the tables can call it. Raises: 22004, 22023.
-- Argument by: the time, 0 to 36500 days.
-- Returns: how many jobs were moved.
-- Example: select jobq_internal.advance_clock('1 hour');
create or replace function jobq_internal.advance_clock(by interval)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _moved uuid[];
begin
    perform jobq_private.check_given('by', num_nulls(advance_clock.by));
    perform jobq_private.check_argument(case
        when advance_clock.by not between '0' and '36500 days' then 'by must be from 0 to 36500 days'
    end);
    update jobq_private.waiter as w set deadline = w.deadline - advance_clock.by;
    with moved as (
        update jobq_private.job as j
        set run_at = j.run_at - advance_clock.by, expires_at = j.expires_at - advance_clock.by
        where j.state in ('queued', 'retrying') and j.run_at <> jobq_private.parked_until()
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.open_keys(coalesce(_moved, '{}'));
    return coalesce(cardinality(_moved), 0);
end
$$;

comment on function jobq_internal.advance_clock is 'For tests: moves waiting jobs into the past, as if this much time had passed.';

-- Purpose: Changes run time, priority, queue, timeout, attempts or payload of waiting
-- jobs, and returns their ids.
-- Invariant: all or none, and only while they wait: skips a job that a worker claims meanwhile.
-- The payload of a job that has run cannot change, nor the concurrency key that a payload
-- contains; a cost that it contains changes with it. A job that waits for an event is due at its
-- deadline at the latest. Raises: 22004, 22023, 42501, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument changes: a JSON object with any of run_at (an instant, or `"now"`), priority, queue,
-- payload, timeout, expires_at and max_attempts (above the attempts already used); omitted and
-- null members do not change anything. run_at must be before expires_at.
-- Argument job_ids: these jobs; each must be waiting. Other filters apply too.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.change_many('{"run_at": "now", "priority": 5}', kind => 'send_email', dry_run => true);
create or replace function jobq.change_many(
    changes jsonb, job_ids uuid[] default null, queue text default null, kind text default null,
    metadata jsonb default null, max_jobs integer default 1000, dry_run boolean default false,
    reason text default null
)
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _chosen constant uuid[] := jobq_private.choose_jobs(
        change_many.job_ids, change_many.queue, change_many.kind, change_many.metadata,
        change_many.max_jobs, change_many.dry_run, change_many.reason, '{queued,retrying}'
    );
    _set constant jobq_private.new_job := jobq_private.check_change(change_many.changes, _chosen);
begin
    perform jobq_private.check_worked(_chosen, _set.queue);
    if not change_many.dry_run then
        perform jobq_private.open_keys('{}', freed => array_agg(distinct j.key_id))
        from jobq_private.job as j
        where j.job_id = any(_chosen)
        having num_nonnulls(_set.queue, _set.run_at, _set.priority) > 0;
        update jobq_private.job as j
        set
            run_at = least(coalesce(_set.run_at, j.run_at), (
                select min(w.deadline) from jobq_private.waiter as w
                where w.job_id = j.job_id and _set.run_at is not null
            )),
            priority = coalesce(_set.priority, j.priority),
            queue = coalesce(_set.queue, j.queue),
            key_id = jobq_private.key_of(
                coalesce(_set.queue, j.queue), j.kind, j.concurrency_key, j.key_id is not null
            ),
            payload = coalesce(_set.payload, j.payload),
            cost = (
                select case
                    when j.cost is not distinct from jobq_private.payload_cost(j.payload, k.path)
                    then jobq_private.payload_cost(coalesce(_set.payload, j.payload), k.path)
                    else j.cost
                end
                from (select (
                    select q.cost from jobq_private.kind as q where q.kind = j.kind
                )) as k (path)
            ),
            timeout = coalesce(_set.timeout, j.timeout),
            max_attempts = coalesce(_set.max_attempts, j.max_attempts),
            expires_at = coalesce(_set.expires_at, j.expires_at)
        where j.job_id = any(_chosen);
        perform jobq_private.open_keys(_chosen);
        perform jobq_private.wake(array(
            select distinct j.queue from jobq_private.job as j where j.job_id = any(_chosen)
        ));
        perform jobq_private.record_audit('change ' || (
            select string_agg(k, ', ') from jsonb_object_keys(jsonb_strip_nulls(changes)) as k
        ), c.job_id::text, change_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;
grant execute on function jobq.change_many to jobq_operator;

comment on function jobq.change_many is 'Changes run time, priority, queue, timeout, attempts or payload of waiting jobs, and returns their ids.';

-- Purpose: Explains why a job is not running, with one row per reason.
-- Invariant: reads only; the most important reason first. Raises: 22004, JQ001.
-- Column reason: blocked, held_up, paused, event, release, key_busy, queue_busy, kind_busy,
-- rate_limited, budget, held, ordered_behind, scheduled, backoff, no_function, no_worker,
-- unknown_kind, slots_lost, locked, waiting, running or finished.
-- Column explanation: a description with details.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
    _live jobq_private.job;
begin
    return query select s.reason, s.explanation from jobq_private.explain_state(_job) as s;
    if _job.state not in ('queued', 'retrying') then
        return;
    end if;

    return query select p.reason, p.explanation from jobq_private.explain_pauses(_job) as p;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    select j.* into _live from jobq_private.job as j where j.job_id = _job.job_id;
    if _live.concurrency_key is not null then
        -- its kind may have got or lost limits for each key since it was stored
        _live.key_id := jobq_private.key_of(_live.queue, _live.kind, _live.concurrency_key, false);
    end if;
    return query
    with own as materialized (
        select b.* from jobq_private.blocking_limits(_live, clock_timestamp()) as b
    )
    select o.reason, o.explanation from own as o
    union all
    select 'budget', f.explanation from jobq_private.explain_first(_live) as f (explanation)
    where not exists (select from own as o where o.reason = 'budget');
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', date_trunc('second', _job.run_at),
                date_trunc('second', _job.run_at - clock_timestamp()),
                case when _job.expires_at <= _job.run_at
                    then ', but expires before, at ' || date_trunc('second', _job.expires_at) end)
        where _job.expires_at <= _job.run_at or not exists (
            -- the reason event gives its deadline
            select from jobq_private.waiter as w
            where w.job_id = _job.job_id and w.deadline = _job.run_at
        );
        return;
    end if;
    return query
    select w.reason, w.explanation from jobq_private.explain_workers(_job) as w
    union all
    select l.reason, l.explanation from jobq_private.explain_locks(_job.job_id) as l;
    return query select 'waiting', format('%s in queue %s%s', case
        when a.jobs = 0 then 'no job is ahead of it'
        when a.jobs = 1 then '1 job is ahead of it'
        when a.jobs > 10000 then '10000+ jobs are ahead of it'
        else a.jobs || ' jobs are ahead of it'
    end, _live.queue, ', concurrency_key ' || _live.concurrency_key)
    from jobq_private.jobs_ahead(_live) as a (jobs);
end
$$;
grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq.explain is 'Explains why a job is not running, with one row per reason.';

-- Purpose: Pauses claims of jobs of a kind, in all queues. Running jobs continue.
-- Invariant: the kind need not be declared; put_kind() does not end the pause. Raises: 22004,
-- 22023, 42501.
-- Example: select jobq.pause_kind('send_email', 'the provider is down');
create or replace function jobq.pause_kind(kind text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('kind', num_nulls(pause_kind.kind));
    perform jobq_private.check_argument(case
        when length(pause_kind.kind) not between 1 and 128 or pause_kind.kind = '*'
        then 'kind must have 1 to 128 characters, and must not be *'
        when length(pause_kind.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.store_pause(pause_kind.kind, 'pause_kind', pause_kind.reason);
exception
    when insufficient_privilege then
        perform jobq_private.raise_error('ALL_QUEUES_NEEDED', 'kind ' || pause_kind.kind);
end
$$;
grant execute on function jobq.pause_kind to jobq_operator;

comment on function jobq.pause_kind is 'Pauses claims of jobs of a kind, in all queues. Running jobs continue.';

-- Purpose: Pauses claims from a queue, or from all (*). Running jobs continue.
-- Invariant: declares the queue if it is not declared. Raises: 22004, 22023, 42501.
-- Argument queue: the queue; * pauses all queues, also new ones.
-- Example: select jobq.pause_queue('mail', 'the provider is down');
create or replace function jobq.pause_queue(queue text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('queue', num_nulls(pause_queue.queue));
    perform jobq_private.check_argument(case
        when length(pause_queue.queue) not between 1 and 128
            or pause_queue.queue <> '*' and right(pause_queue.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        when length(pause_queue.reason) > 512 then 'reason must have at most 512 characters'
    end);
    if pause_queue.queue = '*' then
        perform jobq_private.store_pause('*', 'pause_queue', pause_queue.reason);
        return;
    end if;
    if not exists (select from jobq_private.queue as q where q.queue = pause_queue.queue) then
        raise notice using
            message = 'the queue did not exist; it was created and paused',
            detail = format('queue %s', pause_queue.queue);
    end if;
    insert into jobq_private.queue as q (queue, paused_at, pause_reason)
    values (pause_queue.queue, now(), pause_queue.reason)
    on conflict on constraint queue_pkey do update
    set
        paused_at = coalesce(q.paused_at, now()),
        pause_reason = coalesce(excluded.pause_reason, q.pause_reason),
        updated_at = now();
exception
    when insufficient_privilege then
        perform jobq_private.raise_error(
            case pause_queue.queue when '*' then 'ALL_QUEUES_NEEDED' else 'QUEUE_DENIED' end,
            'queue ' || pause_queue.queue
        );
end
$$;
grant execute on function jobq.pause_queue to jobq_operator;

comment on function jobq.pause_queue is 'Pauses claims from a queue, or from all (*). Running jobs continue.';

-- Purpose: Returns dead jobs to their queues, and returns their ids.
-- Invariant: bounded, oldest first. Skips jobs whose idempotency key or dedup key
-- belongs to another job, even a concurrent one, and jobs that another call redrives.
-- Needs a fixed number of statements. Raises: 22004, 22023.
-- Argument since: only jobs that ended since this time.
-- Argument max_jobs: maximum number, 1 to 100000.
-- Argument job_ids: only the dead ones of these jobs; null means all.
-- Returns: the ids of the redriven jobs.
-- Example: select * from jobq.redrive_many(kind => 'send_email', error_code => 'RECIPIENT_REFUSED');
create or replace function jobq.redrive_many(
    queue text default null, kind text default null, since timestamptz default '-infinity',
    error_code text default null, max_jobs integer default 1000, job_ids uuid[] default null,
    dry_run boolean default false, latest boolean default false
)
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off as $$
declare
    _chosen uuid[];
    _ended timestamptz[];
begin
    perform jobq_private.check_given(
        'since, dry_run and latest', num_nulls(since, dry_run, latest)
    );
    perform jobq_private.check_count('max_jobs', redrive_many.max_jobs, 1, 100000);
    select array_agg(c.job_id), array_agg(c.finished_at) into _chosen, _ended
    from (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.state = 'dead'
        and a.finished_at >= redrive_many.since
        and (redrive_many.job_ids is null or a.job_id = any(redrive_many.job_ids))
        and (redrive_many.queue is null or a.queue = redrive_many.queue)
        and (redrive_many.kind is null or a.kind = redrive_many.kind)
        and (redrive_many.error_code is null or a.last_error_code = redrive_many.error_code)
        -- as the unique index on the dedup keys of jobs
        and (a.dedup is null or a.dedup = 'debounce' and a.attempt > 0 or not exists (
            select from jobq_private.job as j
            where j.kind = a.kind and j.dedup_key = a.dedup_key
            and not (j.dedup is null or j.dedup = 'debounce' and j.attempt > 0)
        ))
        and (a.idempotency_key is null or not exists (
            select from jobq_private.idempotency_key as k
            where k.kind = a.kind
            and k.idempotency_key = a.idempotency_key
            and k.job_id <> a.job_id
            and not jobq_private.is_key_free(k.kind, k.job_id, k.created_at)
        ))
        order by a.finished_at
        limit redrive_many.max_jobs
        for update of a skip locked
    ) as c;
    if redrive_many.dry_run then
        return query select c.job_id from unnest(_chosen) as c (job_id);
    elsif _chosen is not null then
        return query
        select r.* from jobq_private.redrive_jobs(_chosen, _ended, redrive_many.latest) as r;
    end if;
end
$$;
grant execute on function jobq.redrive_many to jobq_operator;

comment on function jobq.redrive_many is 'Returns dead jobs to their queues, and returns their ids.';

-- Purpose: perform the transition when state is updated in the view.
-- Invariant: accepts only the state with the worker, run_at, result and error of the
-- change; the tables' own triggers and foreign key check it, as for every other writer.
-- A row that another transaction has changed meanwhile counts as not found.
-- Raises: JQ002, JQ003, JQ004, JQ005, JQ006, 23503.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.update_from_view()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _free constant text[] := array[
        'state', 'worker', 'run_at', 'result', 'last_error', 'last_error_code', 'cancel_reason'
    ];
begin
    perform jobq_private.check_problem('IMMUTABLE', case
        when new.state = old.state or to_jsonb(new) - _free <> to_jsonb(old) - _free
        then format('job_id %s: an update of jobq.job can change only the state', old.job_id)
    end);
    if old.state in ('dead', 'cancelled') and new.state in ('queued', 'blocked') then
        perform from jobq_private.redrive_jobs(
            array[old.job_id], array[old.finished_at], target => new.state
        );
    elsif old.finished_at is not null then
        update jobq_private.job_archive as a
        set state = new.state
        where a.job_id = old.job_id and a.finished_at = old.finished_at;
    elsif new.state = 'succeeded' and old.state = 'running' then
        perform jobq.complete(old.job_id, old.attempt, new.result);
    else
        update jobq_private.job as j
        set
            state = new.state, worker = new.worker, run_at = new.run_at,
            last_error = jobq_private.redacted(new.last_error),
            last_error_code = new.last_error_code, last_error_details = null,
            cancel_reason = new.cancel_reason
        where j.job_id = old.job_id and j.state = old.state and j.attempt = old.attempt;
    end if;
    if not found then
        if old.finished_at is not null then
            perform jobq_private.refuse_redrive(old);
        end if;
        return null;
    elsif old.finished_at is null then
        perform jobq_private.record_audit(
            'update to ' || new.state, old.job_id::text, new.cancel_reason
        );
    end if;
    if jobq_private.state_of(old.job_id) is null then
        return new;  -- it has ended, and leaves no trace
    end if;
    return jobq.get_job(old.job_id);  -- as the triggers have left it
end
$$;

create or replace trigger job_update
instead of update on jobq.job
for each row execute function jobq_private.update_from_view();

commit;
