-- Deploy jobq:admin to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: numbers of jobs that were created or ended, and of attempts that failed,
-- between two times, by bucket, queue and kind, for roll_up_buckets().
-- Invariant: without narrow buckets to read, reads ended jobs by time and created jobs by
-- id. class, only of succeeded jobs, is the bucket of the latency: from when the job could
-- first run, for later attempts from its creation. Narrow buckets have latencies without a queue.
create or replace function jobq_private.bucket_events(
    minutes integer, narrow integer, since timestamptz, until timestamptz
)
returns table (bucket timestamptz, queue text, kind text, event text, class integer, jobs bigint)
language plpgsql
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    -- Bounds of the minutes, as times and as ids, and of the latency buckets, in
    -- seconds.
    _times constant timestamptz[] := array(
        select t from generate_series(since, until, interval '1 min') as t
    );
    _ids constant uuid[] := array(select jobq_private.id_floor(t) from unnest(_times) as t);
    _classes constant double precision[] := array(
        select (power(2, k / 2.0) - 1) / 1000 from generate_series(1, 49) as k
    );
    _end constant uuid := _ids[cardinality(_ids)];
    _width constant interval := make_interval(mins => minutes);
    _from constant timestamptz := date_bin(_width, since, '2000-01-01 UTC');
    _to constant timestamptz := date_bin(_width, until, '2000-01-01 UTC');
begin
    if narrow is not null then
        return query
        select date_bin(_width, h.bucket, '2000-01-01 UTC'), h.queue, h.kind, c.event, null, c.jobs
        from jobq_private.history as h
        cross join lateral (
            values ('enqueued', h.enqueued), ('succeeded', h.succeeded), ('failed', h.failed),
            ('dead', h.dead), ('cancelled', h.cancelled)
        ) as c (event, jobs)
        where h.minutes = narrow and h.bucket >= _from and h.bucket < _to
        union all
        select date_bin(_width, l.bucket, '2000-01-01 UTC'), null, null, null, c.n::integer - 1, c.jobs
        from jobq_private.latency as l
        cross join unnest(l.counts) with ordinality as c (jobs, n)
        where l.minutes = narrow and l.bucket >= _from and l.bucket < _to;
        return;
    end if;
    return query
    select _times[e.n], e.queue, e.kind, e.event, e.class, count(*)
    from (
        select width_bucket(a.finished_at, _times) as n, a.queue, a.kind, a.state as event,
            case a.state when 'succeeded' then width_bucket(date_part('epoch', a.finished_at
                - case a.attempt when 1 then greatest(a.run_at, a.created_at) else a.created_at end
            ), _classes) end as class
        from jobq_private.job_archive as a
        where a.finished_at >= since and a.finished_at < until
        union all
        select width_bucket(j.job_id, _ids), j.queue, j.kind, 'enqueued', null
        from jobq_private.job as j
        where j.job_id >= _ids[1] and j.job_id < _end
        union all
        select width_bucket(a.job_id, _ids), a.queue, a.kind, 'enqueued', null
        from jobq_private.job_archive as a
        where a.job_id >= _ids[1] and a.job_id < _end and a.finished_at >= since
        union all
        select width_bucket(t.finished_at, _times), coalesce(j.queue, a.queue), coalesce(j.kind, a.kind),
            'failed', null
        from jobq_private.attempt as t
        left join jobq_private.job as j on j.job_id = t.job_id
        left join lateral (
            select h.queue, h.kind
            from jobq_private.job_archive as h
            where j.job_id is null and h.job_id = t.job_id and h.finished_at >= t.finished_at
            limit 1
        ) as a on true
        where t.finished_at >= since and t.finished_at < until and t.state = 'retrying'
    ) as e
    where e.queue is not null
    group by 1, 2, 3, 4, 5;
end
$$;

-- Purpose: parse a change of waiting jobs, and refuse values that no new job could
-- have.
-- Invariant: reads only. Looks up the payload schema of each kind; the depth limit of a
-- queue counts only jobs that come from another queue.
-- Raises: 22004, 22023, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_change(changes jsonb, job_ids uuid[])
returns jobq_private.new_job
language plpgsql
stable
as $$
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
        ));
    end if;
    if _set.queue is not null then
        perform jobq_private.check_queue_depth(check_change.job_ids, _set.queue);
    end if;
    return _set;
end
$$;

-- Purpose: refuse a new payload for a job that has run, or with another concurrency key
-- or dedup key than the job's, because limits and live jobs were compared by these.
-- Invariant: reads only. Raises: JQ002.
create or replace function jobq_private.check_payload_change(job_ids uuid[], payload jsonb)
returns void
language plpgsql
stable
as $$
declare
    _ran text;
    _keyed text;
begin
    select
        min(j.job_id::text) filter (where j.attempt > 0 or j.state <> 'queued'),
        min(j.job_id::text) filter (
            where j.concurrency_key is not distinct from j.payload #>> k.concurrency_key
            and check_payload_change.payload #>> k.concurrency_key
            is distinct from j.concurrency_key
            or j.dedup_key = jobq_private.payload_key(j.payload, k.dedup_key)
            and jobq_private.payload_key(check_payload_change.payload, k.dedup_key)
            is distinct from j.dedup_key
        )
    into _ran, _keyed
    from jobq_private.job as j
    left join jobq_private.kind as k on k.kind = j.kind
    where j.job_id = any(check_payload_change.job_ids)
    and j.payload <> check_payload_change.payload;
    perform jobq_private.check_problem('IMMUTABLE', case
        when _ran is not null
        then format('job_id %s has already run: its payload cannot be changed', _ran)
        when _keyed is not null then format(
            'job_id %s: its concurrency key or dedup key comes from its payload, which cannot be changed', _keyed
        )
    end);
end
$$;

-- Purpose: refuse what is not the name of a state.
-- Raises: 22023.
create or replace function jobq_private.check_states(states text[])
returns void
language plpgsql
stable
as $$
declare
    _known constant text[] := array(
        select distinct t.to_state from jobq_private.transition as t order by t.to_state
    );
begin
    perform jobq_private.check_argument(case
        when not states <@ _known or array_position(states, null) is not null
        then 'state must be one of ' || array_to_string(_known, ', ')
    end);
end
$$;

-- Purpose: lock the jobs that an operator has chosen, and return their ids.
-- Invariant: bounded, oldest first, locked in the order of ids, live jobs before
-- finished ones. Jobs named by id must all exist in one of the states; a filter selects
-- those in one of the states. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.choose_jobs(
    job_ids uuid[], queue text, kind text, metadata jsonb, max_jobs integer,
    dry_run boolean, reason text, states text[], state text default null
)
returns uuid[]
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
    _chosen uuid[];
begin
    perform jobq_private.check_given(
        'job_ids, max_jobs and dry_run',
        num_nulls(max_jobs, dry_run)
        + (select count(*) from unnest(job_ids) as g (job_id) where g.job_id is null)::integer
    );
    perform jobq_private.check_argument(case
        when num_nonnulls(job_ids, queue, kind, nullif(metadata, '{}')) = 0
        then 'pass job_ids, queue, kind or metadata, not empty'
        when jsonb_typeof(metadata) <> 'object' then 'metadata must be a JSON object'
        when max_jobs not between 1 and 100000 or cardinality(job_ids) > max_jobs
        then 'max_jobs must be from 1 to 100000, and no fewer than the job_ids'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when state <> all(states) then 'state must be one of ' || array_to_string(states, ', ')
    end);
    states := case when state is null then states else array[state] end;
    _chosen := array(
        select m.job_id
        from jobq_private.match_jobs(
            choose_jobs.states, '00000000-0000-0000-0000-000000000000',
            'ffffffff-ffff-ffff-ffff-ffffffffffff', choose_jobs.kind, choose_jobs.queue,
            choose_jobs.metadata, job_ids => choose_jobs.job_ids
        ) as m
        order by m.job_id
        limit choose_jobs.max_jobs
    );
    -- A job that has changed meanwhile is left out.
    _chosen := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_chosen) and j.state = any(choose_jobs.states)
        order by j.job_id
        for update
    ) || array(
        select a.job_id
        from jobq_private.job_archive as a
        where choose_jobs.states && '{succeeded,dead,cancelled}'
        and a.job_id = any(_chosen) and a.state = any(choose_jobs.states)
        order by a.job_id
        for update
    );
    perform jobq_private.check_problem('ILLEGAL_STATE', (
        select format('job_id %s is %s; it must be %s', j.job_id, j.state,
            array_to_string(states, ' or '))
        from unnest(choose_jobs.job_ids) as m (job_id)
        cross join lateral jobq.get_job(m.job_id) as j
        where m.job_id <> all(_chosen) and j.state <> all(states)
        order by j.job_id
        limit 1
    ));
    return _chosen;
end
$$;

-- Purpose: whether a client's clock agrees with the database's.
-- Invariant: no row without a given time.
create or replace function jobq_private.clock_health(client_time timestamptz)
returns setof jobq_private.finding
language sql
as $$
    select
        'clock', abs(d.seconds) < 5,
        format('the database is %s s %s the client', round(abs(d.seconds), 1),
            case when d.seconds < 0 then 'behind' else 'ahead of' end),
        null
    from (
        select extract(epoch from clock_timestamp() - clock_health.client_time) as seconds
    ) as d
    where d.seconds is not null
$$;

-- Purpose: count the waiting jobs of a queue, up to about twice `most`.
-- Invariant: reads at most `most` + 1 jobs without and with keys each, by the indexes
-- of claims. If seen exceeds `most`, each number may be larger. oldest and due, the first run_at
-- and the first moment at which a job could be claimed, cover the jobs that were read.
create or replace function jobq_private.count_head(
    queue text, most integer, as_of timestamptz
)
returns table (
    seen bigint, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    due timestamptz
)
language sql
stable
as $$
    select
        count(*),
        count(*) filter (where w.state = 'queued' and w.run_at <= as_of),
        count(*) filter (where w.state = 'queued' and w.run_at > as_of),
        count(*) filter (where w.state = 'retrying'),
        min(w.run_at) filter (where w.run_at <= as_of),
        min(w.due_at) filter (where w.due_at <= as_of)
    from jobq_private.head_jobs(count_head.queue, most + 1) as w
$$;

-- Purpose: how many jobs of each queue run, are blocked, or are dead, for overviews.
-- Invariant: counts up to `most` jobs of a state over all queues, dead ones from the
-- newest; if a state has more, is_cut is true.
create or replace function jobq_private.count_states(most integer)
returns table (queue text, state text, jobs bigint, is_cut boolean)
language sql
stable
as $$
    select s.queue, s.state, count(*), sum(count(*)) over (partition by s.state) > most
    from (
        (select j.queue, j.state from jobq_private.job as j where j.state = 'running' limit most + 1)
        union all
        (select j.queue, j.state from jobq_private.job as j where j.state = 'blocked' limit most + 1)
        union all
        (
            select a.queue, a.state
            from jobq_private.job_archive as a
            where a.state = 'dead'
            order by a.job_id desc
            limit most + 1
        )
    ) as s
    group by s.queue, s.state
$$;

-- Purpose: count the waiting jobs of queues that waiting_counts() reads only in part.
-- Invariant: one scan of all live jobs, using at most a twentieth of the time.
create or replace function jobq_private.count_waiting()
returns void
language plpgsql
as $$
declare
    _started constant timestamptz := clock_timestamp();
begin
    if exists (
        select from jobq_private.waiting_count as c
        where c.counted_at + 20 * c.took > _started
    ) then
        return;
    end if;
    delete from jobq_private.waiting_count;
    insert into jobq_private.waiting_count (queue, queued, scheduled, retrying, counted_at, took)
    select
        j.queue,
        count(*) filter (where j.state = 'queued' and j.run_at <= _started),
        count(*) filter (where j.state = 'queued' and j.run_at > _started),
        count(*) filter (where j.state = 'retrying'),
        _started, '0'
    from jobq_private.job as j
    where j.state in ('queued', 'retrying')
    group by j.queue
    having count(*) > 100;
    update jobq_private.waiting_count as c set took = clock_timestamp() - _started;
end
$$;

-- Purpose: end the pause of a kind, or of every job (*), wake the workers, and record it.
-- Invariant: wakes the queues in which jobs wait, and the patterns of workers, such as tenant-*: a
-- worker may wait on the names that its pattern has matched, on the pattern, or on both.
create or replace function jobq_private.end_pause(kind text, action text)
returns void
language plpgsql
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    delete from jobq_private.paused_kind as p where p.kind = end_pause.kind;
    if not found then
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

-- Purpose: a cursor for a position among finished jobs.
-- Invariant: microseconds, so that nothing is rounded; event_start() parses it.
create or replace function jobq_private.event_cursor(at timestamptz, job_id uuid)
returns text
language sql
immutable
as $$
    select (extract(epoch from event_cursor.at) * 1000000)::bigint || '_' || event_cursor.job_id
$$;

-- Purpose: the time up to which a page of listen_events() reads.
-- Invariant: the archive has no index in the order of ends, but its rows are roughly in
-- that order. So a span of a second grows until it holds a page, or 20,000 rows in any
-- case. Its caller pins the planner's settings.
create or replace function jobq_private.event_span(
    since timestamptz, job_id uuid, until timestamptz, queues text[], kinds text[],
    max_events integer
)
returns timestamptz
language plpgsql
stable
as $$
declare
    _span interval := interval '1 s';
    _to timestamptz;
    _fit bigint;
    _all bigint;
begin
    loop
        _to := least(event_span.since + _span, event_span.until);
        select
            count(*),
            count(*) filter (
                where (event_span.queues is null or a.queue = any(event_span.queues))
                and (event_span.kinds is null or a.kind = any(event_span.kinds))
            )
        into _all, _fit
        from jobq_private.job_archive as a
        where a.finished_at >= event_span.since
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (event_span.since, event_span.job_id);
        if _to = event_span.until or _fit >= event_span.max_events or _all >= 20000 then
            return _to;
        end if;
        _span := _span * 4;
    end loop;
end
$$;

-- Purpose: where a page of listen_events() starts.
-- Invariant: refuses a standby, which does not show the primary's locks; a transaction
-- with one snapshot, which does not see what others commit; a cursor that
-- event_cursor() has not written, and one more than a minute ahead of the clock. The
-- minute allows for the clock of a promoted standby. Raises: 22004, 22023.
create or replace function jobq_private.event_start(
    after text, queues text[], kinds text[], since timestamptz, max_events integer,
    out at timestamptz, out job_id uuid
)
language plpgsql
stable
as $$
begin
    perform jobq_private.check_argument(case
        when array_ndims(queues) > 1 or array_ndims(kinds) > 1
        then 'queues and kinds must be one-dimensional'
        when max_events not between 1 and 1000
        then 'max_events must be from 1 to 1000'
        when cardinality(queues) = 0 or cardinality(kinds) = 0
        then 'queues and kinds must each be null or have at least one name'
        when after is not null and since is not null
        then 'pass after or since, not both'
        when since not between '1970-01-01 UTC' and clock_timestamp()
        then 'since must be from 1970 to now'
        when pg_is_in_recovery()
        then 'events are not available on a standby; connect to the primary'
        when current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
        then 'events require the isolation level read committed'
        when after !~ '^[0-9]{1,16}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then 'after must be a cursor of listen_events()'
    end);
    perform jobq_private.check_given(
        'max_events, or one of queues or kinds',
        num_nulls(max_events) + coalesce(array_position(queues || kinds, null), 0)
    );
    at := coalesce(
        timestamptz '1970-01-01 UTC' + interval '1 us' * split_part(after, '_', 1)::bigint,
        since, clock_timestamp()
    );
    job_id := coalesce(
        split_part(after, '_', 2)::uuid, '00000000-0000-0000-0000-000000000000'::uuid
    );
    perform jobq_private.check_argument(case
        when at > clock_timestamp() + interval '1 min'
        then 'after is in the future: it may come from another server'
    end);
end
$$;

-- Purpose: the HTTP API's name for the state of a job.
create or replace function jobq_private.execution_status(state text, run_at timestamptz)
returns text
language plpgsql
stable
as $$
begin
    return case state
        when 'blocked' then 'PENDING'
        when 'queued' then case when run_at > clock_timestamp() then 'PENDING' else 'QUEUED' end
        when 'running' then 'RUNNING'
        when 'retrying' then 'RETRYING'
        when 'succeeded' then 'SUCCESS'
        when 'dead' then 'FAILED'
        when 'cancelled' then 'CANCELLED'
    end;
end
$$;

-- Purpose: what a blocked job waits for, down to the jobs that wait for none, and why
-- those do not run.
-- Invariant: reads only; reads at most 1,000 ancestors, and explains the first five
-- that wait for none themselves.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.explain_blocked(job jobq.job)
returns table (reason text, explanation text)
language sql
stable
as $$
    select 'blocked', format(
        'waits for %s of %s jobs', count(*) filter (where e.is_open), count(*)
    )
    from jobq_private.edge as e
    where e.child = job.job_id
    having count(*) > 0
    union all
    select 'blocked', format(
        'waits for the end of batch %s: members live: %s, %s', b.batch_id,
        (select count(*) from jobq_private.job as m where m.batch_id = b.batch_id),
        case when b.sealed_at is null then 'not sealed' else 'sealed at ' || b.sealed_at end
    )
    from jobq_private.batch as b
    where b.batch_id::text = job.metadata ->> 'batch_id'
    and job.job_id in (b.on_success, b.on_end, b.on_first_death)
    union all
    select 'held_up', format(
        'job_id %s, %s', h.job_id,
        coalesce(
            j.kind || ': ' || x.reason || ', ' || x.explanation,
            j.kind, 'which was deleted or is not visible'
        )
    )
    from (
        select a.* from jobq_private.holders(job.job_id) as a order by a.job_id limit 5
    ) as h
    left join lateral (
        select v.job_id, v.kind from jobq.job as v
        where v.job_id = h.job_id and h.state is not null
        limit 1
    ) as j on true
    left join lateral (
        select e.* from jobq.explain(j.job_id) as e where j.job_id is not null limit 1
    ) as x on true
$$;

-- Purpose: which transactions have claimed or locked a due job, or a limit that it needs,
-- for explain(): they have claimed a job under the same limit, or are about to, and have
-- not committed.
-- Invariant: reads only; no row if nothing is locked.
create or replace function jobq_private.explain_locks(job_id uuid)
returns table (reason text, explanation text)
language sql
stable
as $$
    select 'locked', l.what || coalesce(
        'the transaction of process ' || l.pid, 'a prepared transaction'
    ) || l.does
    from (
        select '', x.pid, ' has claimed or locked it and has not committed'
        from jobq_private.job as j
        join pg_locks as x
            on x.locktype = 'transactionid' and x.transactionid = j.xmax and x.granted
        where j.job_id = explain_locks.job_id and x.pid is distinct from pg_backend_pid()
        union all
        select g.scope || ': ', g.pid, ' has claimed, and has not committed'
        from (
            select distinct on (x.pid) x.pid, s.scope
            from jobq_private.job as j
            cross join lateral jobq_private.job_limits(j) as i
            cross join lateral concat_ws(
                ', ', coalesce('kind ' || i.kind, 'queue ' || i.queue),
                'concurrency_key ' || i.concurrency_key
            ) as s (scope)
            join pg_locks as x on x.granted and x.pid is distinct from pg_backend_pid() and (
                x.locktype = 'transactionid' and x.transactionid = (
                    select g.xmax from jobq_private.limit_state as g where g.limit_id = i.limit_id
                )
                or x.locktype = 'advisory'
                and x.database = (select d.oid from pg_database as d where d.datname = current_database())
                and x.classid = jobq_private.lock_class('making')::oid
                and x.objid = jobq_private.lock_slot(i.limit_id)::oid
            )
            where j.job_id = explain_locks.job_id
            order by x.pid, s.scope
        ) as g
    ) as l (what, pid, does)
$$;

-- Purpose: which pauses hold up a waiting job, for explain(): of its queue, its kind, every
-- queue, or its endpoint; the events that it waits for; and the release that it needs.
-- Invariant: reads only; no row if nothing is paused, awaited or missing.
create or replace function jobq_private.explain_pauses(job jobq.job)
returns table (reason text, explanation text)
language sql
stable
as $$
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
            case when isfinite(w.deadline) then ', until ' || date_trunc('second', w.deadline) end)
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
returns table (reason text, explanation text)
language sql
stable
as $$
    select 'finished', format(
        '%s at %s, after %s%s%s', job.state, job.finished_at,
        job.attempts || case job.attempts when 1 then ' attempt' else ' attempts' end,
        coalesce(': ' || case
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
        'attempt %s on %s since %s; lease %s %s', job.attempt, job.worker,
        date_trunc('second', job.claimed_at),
        case when job.lease_expires_at < clock_timestamp()
            then 'expired (recover() will end the attempt)' else 'until' end,
        date_trunc('second', job.lease_expires_at)
    )
    where job.state = 'running'
    union all
    select b.* from jobq_private.explain_blocked(job) as b where job.state = 'blocked'
$$;

-- Purpose: what the workers and functions that could run a waiting job lack, for
-- explain().
-- Invariant: reads only; no row if nothing is lacking.
create or replace function jobq_private.explain_workers(job jobq.job)
returns table (reason text, explanation text)
language sql
stable
as $$
    select 'no_function', format(
        'kind %s needs %s', k.kind, coalesce(p.problem || '; create it, or change the kind', b.bar)
    )
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
    cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
    where k.kind = job.kind and k.run is not null and coalesce(p.problem, b.bar) is not null
    union all
    select case when s.is_served then 'unknown_kind' else 'no_worker' end, case
        when not s.is_served then format('no worker of queue %s was seen in the last minute', job.queue)
        else format('no live worker of queue %s has %s kind %s', job.queue, case
            when exists (select from jobq_private.endpoint as e where e.endpoint = job.kind)
            then 'driver and keys to deliver'
            else 'a handler for'
        end, job.kind)
    end
    from (
        select exists (
            select from jobq_private.live_worker as w where jobq_private.serves(w.queues, job.queue)
        ) as is_served
    ) as s
    where not s.is_served or jobq_private.is_unknown(job.kind, job.queue)
    union all
    (
        select 'slots_lost', format('handlers that hang occupy %s slots of worker %s', w.stuck, w.worker)
        from jobq_private.live_worker as w
        where w.stuck > 0 and jobq_private.serves(w.queues, job.queue)
        order by w.worker
    )
$$;

-- Purpose: what the function PART_health() finds, for part_health().
create or replace function jobq_private.findings(part text, client_time timestamptz, release text)
returns setof jobq_private.finding
language plpgsql
as $$
begin
    case part
        when 'server' then return query select * from jobq_private.server_health();
        when 'vacuum' then return query select * from jobq_private.vacuum_health();
        when 'replication' then return query select * from jobq_private.replication_health();
        when 'trial' then return query select * from jobq_private.trial_health();
        when 'locks' then return query select * from jobq_private.locks_health();
        when 'settings' then return query select * from jobq_private.settings_health();
        when 'jobs' then return query select * from jobq_private.jobs_health();
        when 'workers' then return query select * from jobq_private.workers_health();
        when 'maintenance' then return query select * from jobq_private.maintenance_health();
        when 'schema' then return query select * from jobq_private.schema_health(release);
        when 'clock' then return query select * from jobq_private.clock_health(client_time);
    end case;
end
$$;

-- Purpose: delete jobs, live or finished, with all their records.
-- Invariant: the caller has locked their rows. Jobs that wait for them, or have called
-- them, are checked again, and so are their batches, which cannot succeed without them. "is true"
-- prevents the use of partial indexes, which would scan the array for each entry.
create or replace function jobq_private.forget_jobs(job_ids uuid[])
returns void
language sql
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
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
    delete from jobq_private.edge as e where e.child = any(forget_jobs.job_ids);
    delete from jobq_private.node as n where n.job_id = any(forget_jobs.job_ids);
    delete from jobq_private.event as e where e.job_id = any(forget_jobs.job_ids);
    with live as (
        delete from jobq_private.job as j where j.job_id = any(forget_jobs.job_ids)
        returning j.job_id, j.kind, j.idempotency_key
    ),
    ended as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids)
        returning a.job_id, a.kind, a.idempotency_key
    )
    delete from jobq_private.idempotency_key as k
    using (select * from live union all select * from ended) as g
    where k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id;
    select jobq_private.tell_ended(forget_jobs.job_ids)
    where jobq_private.is_locked('awaiting', 0)
$$;

-- Purpose: jobs as nodes, for show_graph(), ordered by id.
-- Invariant: reads only; omits deleted jobs.
create or replace function jobq_private.graph_node_documents(job_ids uuid[])
returns jsonb
language sql
stable
as $$
    select coalesce(jsonb_agg(d order by d.job_id), '[]')
    from (
        select j.job_id, n.name, j.kind, j.queue, j.state, j.attempts, j.max_attempts, j.created_at,
            j.run_at, j.claimed_at as started_at, j.finished_at, f.last_error_code as error_code,
            f.last_error as error, j.batch_id, w.waits_for,
            h.held_up_by
        from unnest(graph_node_documents.job_ids) as g (job_id)
        left join jobq_private.holders_among(graph_node_documents.job_ids) as h
            on h.job_id = g.job_id
        cross join lateral (
            select l.* from jobq.job as l where l.job_id = g.job_id and l.finished_at is null
            union all
            select a.* from jobq.job as a
            where a.job_id = g.job_id
            and a.finished_at >= jobq_private.id_time(g.job_id) - interval '1 day'
        ) as j
        left join jobq_private.node as n on n.job_id = j.job_id
        left join lateral (select j.last_error_code, j.last_error) as f
            on j.state in ('dead', 'cancelled', 'retrying')
        cross join lateral (
            select count(*) as waits_for from jobq_private.edge as e
            where j.state = 'blocked' and e.child = j.job_id and e.is_open
        ) as w
    ) as d
$$;

-- Purpose: the first waiting jobs of a queue, at most so many without and with keys each.
-- Invariant: in the order of the indexes of claims, so it reads no other jobs. Callers pin the
-- planner's settings.
-- Argument due_by: only jobs that are due until then.
-- Column due_at: of jobs with keys, their run_at.
create or replace function jobq_private.head_jobs(
    queue text, most integer, due_by timestamptz default 'infinity'
)
returns table (job_id uuid, kind text, state text, run_at timestamptz, due_at timestamptz)
language sql
stable
as $$
    (
        select j.job_id, j.kind, j.state, j.run_at, j.due_at
        from jobq_private.job as j
        where j.queue = head_jobs.queue and j.state in ('queued', 'retrying')
        and j.due_at <= head_jobs.due_by
        order by j.priority desc, j.due_at, j.job_id
        limit head_jobs.most
    )
    union all
    (
        select j.job_id, j.kind, j.state, j.run_at, j.run_at
        from jobq_private.job as j
        where j.queue = head_jobs.queue and j.state in ('queued', 'retrying')
        and j.key_id is not null
        and j.run_at <= head_jobs.due_by
        order by j.key_id, j.priority, j.run_at, j.job_id
        limit head_jobs.most
    )
$$;

-- Purpose: repair live jobs that bypassed the triggers, for example by
-- session_replication_role = replica or an incomplete restore, if the repair is
-- unambiguous: a running job without a lease is retried, or dead without attempts left;
-- a waiting one that is due at no time is due by its run_at; a finished one moves to the archive.
-- Invariant: only by legal changes of state; health() reports the rest. job_odd_idx
-- contains only such jobs. Returns how many.
create or replace function jobq_private.heal_jobs(max_rows integer)
returns bigint
language plpgsql
set jit = off
set enable_seqscan = off
as $$
declare
    _odd uuid[];
begin
    _odd := array(
        select j.job_id
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit heal_jobs.max_rows
        for update skip locked
    );
    update jobq_private.job as j
    set
        state = case
            when j.attempt - j.uncounted < j.max_attempts then 'retrying' else 'dead'
        end,
        last_error_code = 'LEASE_EXPIRED', last_error = 'it ran without a lease',
        last_error_details = null
    where j.job_id = any(_odd) and j.state = 'running';

    update jobq_private.job as j
    set due_at = j.run_at
    where j.job_id = any(_odd)
    and j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null;

    perform jobq_private.archive_jobs(array_agg(j.job_id), array_agg(j.attempt), j.state)
    from jobq_private.job as j
    join jobq_private.transition as t
        on t.from_state = j.previous_state and t.to_state = j.state
    where j.job_id = any(_odd) and j.state in ('succeeded', 'dead', 'cancelled')
    group by j.state;
    return (
        select count(*)
        from unnest(_odd) as o (job_id)
        left join jobq_private.job as j on j.job_id = o.job_id
        where j.job_id is null
        or j.state in ('queued', 'retrying') and j.lease_expires_at is null
    );
end
$$;

-- Purpose: the checks of health(): how bad a problem is, what is said, and what to do.
-- Column part: the function PART_health(), which returns findings.
-- Column fine: what is said without a finding; null if the function always says it.
-- Column found: the text around the findings. Findings that are sentences have no text.
-- Column remedy: what to do; null if the function says it.
create or replace view jobq_private.health_check as
select c.*
from (
    values
    ('server', 'fsync', 'failure', null, '%s',
        'set fsync = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'synchronous_commit', 'failure', null, '%s',
        'set synchronous_commit = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'full_page_writes', 'failure', null, '%s',
        'set full_page_writes = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'autovacuum', 'warning', null, '%s',
        'set autovacuum = on: otherwise bloat grows'),
    ('server', 'connections', 'warning', null, '%s',
        'end unused sessions, run fewer workers, or use PgBouncer'),
    ('server', 'notifications', 'warning', null, '%s',
        'end the listening session that is idle in a transaction'),
    ('vacuum', 'snapshot', 'warning', 'nothing holds back vacuum', '%s',
        'end the session, drop the replication slot, or finish the prepared transaction'),
    ('vacuum', 'dead_tuples', 'warning', null, '%s',
        'end what holds back vacuum (see snapshot), then vacuum jobq_private.job'),
    ('vacuum', 'table_autovacuum', 'warning', 'autovacuum is on for all tables',
        'autovacuum is off for %s', 'alter table … reset (autovacuum_enabled), then vacuum it'),
    ('vacuum', 'transaction_ids', 'failure', null, '%s',
        'end what holds back vacuum (see snapshot), then vacuum (freeze) the database'),
    ('vacuum', 'multixact', 'failure', null, '%s',
        'let autovacuum finish, or vacuum (freeze) the tables it has not processed'),
    ('vacuum', 'multixact_members', 'failure', null, '%s',
        'vacuum (freeze) tables that many sessions lock; at 4 billion all writes fail'),
    ('replication', 'standby', 'warning', 'this is a primary', '%s',
        'connect to the primary: list all hosts in the URL, with target_session_attrs=read-write'),
    ('replication', 'wal', 'warning', 'no replication slot retains WAL', '%s',
        'let the reader of the slot catch up, drop the slot, or set max_slot_wal_keep_size, before'
        ' the disk is full and all writes fail'),
    ('replication', 'failover', 'warning', null, '%s',
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses commits'
        ' that were acknowledged but have not reached the standby'),
    ('replication', 'confirmation', 'failure', 'every required standby is connected', '%s',
        'start the standby, or remove it from synchronous_standby_names'),
    ('replication', 'publication', 'warning',
        'no publication contains the tables of live jobs', 'published: %s',
        'alter publication … drop table, unless you are migrating the database: each change of a'
        ' job is decoded and sent'),
    ('locks', 'locks', 'failure', 'no table is locked', '%s',
        'end the session that holds the lock: select pg_terminate_backend(PID)'),
    ('settings', 'role_settings', 'failure', 'no role or database setting endangers jobs', '%s',
        null),
    ('settings', 'connect', 'warning', null, '%s', null),
    ('jobs', 'leases', 'failure', null, '%s',
        'start a worker, or call maintain() every few seconds'),
    ('jobs', 'queues', 'failure', 'every queue with due jobs has a live worker',
        'no live worker serves %s',
        'start a worker for these queues, or call work() if their kinds are functions'),
    ('jobs', 'kinds', 'warning', 'every kind with due jobs has a worker that handles it',
        'no live worker has a handler for %s',
        'start a worker with handlers, or drivers and keys, for these kinds'),
    ('jobs', 'waiting', 'warning', 'no job has been due for 5 minutes', '%s',
        'resume the queue or kind, release the key, raise the limit, or start more workers;'
        ' jobq explain JOB_ID shows all reasons'),
    ('jobs', 'moves', 'failure', 'no move to another shard was interrupted', '%s', null),
    ('jobs', 'rows', 'failure', 'every live job is in a valid state',
        '%2$s live jobs bypassed the triggers, as %1$s',
        'maintain() repairs what it can; delete the others as jobq_owner, see operations'),
    ('workers', 'workers', 'failure', null, '%s', 'start a worker'),
    ('workers', 'functions', 'warning', 'every function of a kind exists', '%s',
        'create the function, allow the login of a worker to run it, or change the kind with'
        ' put_kind()'),
    ('workers', 'slots', 'warning', 'no handler hangs after its timeout', '%s',
        'add timeouts inside these handlers, or use process=True'),
    ('workers', 'endpoints', 'warning',
        'no paused endpoint has had deliveries due for 5 minutes', '%s',
        'fix the endpoint, then call resume_endpoint()'),
    ('maintenance', 'maintenance', 'failure', 'no task has failed', '%s',
        'fix the cause of the error, or end that session; maintain() retries at each call'),
    ('maintenance', 'schedules', 'warning', 'all schedules fire', '%s',
        'fix the cause of the error, or change or retire the schedule; it is retried each minute,'
        ' and others fire'),
    ('maintenance', 'partitions', 'warning', null, '%s',
        'call maintain(); until then finished jobs go to the default partition'),
    ('clock', 'clock', 'warning', null, '%s',
        'synchronize both clocks by NTP: leases and due times use the database''s clock'),
    ('trial', 'trial', 'failure', null, '%s', null),
    ('schema', 'release', 'warning', null, '%s',
        'run jobq deploy of the release that workers and clients use')
) as c (part, subject, severity, fine, found, remedy)
union all
select 'schema', s.subject, 'failure', s.fine, '%2$s objects differ from the deployed schema: %1$s',
    'run jobq deploy of the release that workers and clients use; it repairs everything except'
    ' tables and columns, which it lists'
from (
    values
    ('schema', 'the schema is unchanged since its deployment'),
    ('indexes', 'every index exists and is valid'),
    ('constraints', 'every constraint and foreign key exists'),
    ('triggers', 'every trigger exists and is enabled'),
    ('owners', 'jobq_owner owns everything'),
    ('grants', 'every role has its privileges'),
    ('public', 'PUBLIC has no privileges of jobq''s roles')
) as s (subject, fine);

comment on view jobq_private.health_check is 'the checks of health(): how bad a problem is, what is said, and what to do.';

-- Purpose: the jobs that block a job: its ancestors over open edges that wait for no
-- job themselves; they may wait for the end of a batch.
-- Invariant: reads only, at most 1,000 ancestors.
create or replace function jobq_private.holders(blocked uuid)
returns table (job_id uuid, state text)
language sql
stable
as $$
    with recursive above as (
        select holders.blocked as job_id
        union
        select e.parent
        from above as a
        join jobq_private.edge as e on e.child = a.job_id and e.is_open
    )
    select h.job_id, s.state
    from (select a.job_id from above as a limit 1000) as h
    cross join lateral jobq_private.state_of(h.job_id) as s (state)
    where h.job_id <> holders.blocked
    and (
        s.state is distinct from 'blocked'
        or not exists (
            select from jobq_private.edge as e where e.child = h.job_id and e.is_open
        )
    )
$$;

-- Purpose: for those of these jobs that are blocked, one that blocks each: an ancestor over
-- open edges that waits for no job itself.
-- Invariant: reads only; reads each edge among them once, and none beyond. Each job follows
-- its first parent, so it is reached once. Each step probes a hash of all these pairs.
create or replace function jobq_private.holders_among(job_ids uuid[])
returns table (job_id uuid, held_up_by uuid)
language sql
stable
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
    with recursive pair as materialized (
        select distinct on (e.child) e.child, e.parent
        from jobq_private.edge as e
        join jobq_private.job as j on j.job_id = e.child
        join unnest(holders_among.job_ids) as p (job_id) on p.job_id = e.parent
        where e.child = any(holders_among.job_ids) and e.is_open
        and j.job_id = any(holders_among.job_ids) and j.state = 'blocked'
        order by e.child, e.parent
    ),
    held (job_id, held_up_by) as (
        select t.child, t.parent from pair as t
        where not exists (select from pair as a where a.child = t.parent)
        union all
        select t.child, h.held_up_by
        from held as h
        join pair as t on t.parent = h.job_id
    )
    select h.job_id, h.held_up_by from held as h
$$;

-- Purpose: whether every live worker of a queue has seen this kind and has no handler
-- for it.
-- Invariant: reads only; false without a worker for the queue, and for database
-- functions, which every worker can run.
create or replace function jobq_private.is_unknown(kind text, queue text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(is_unknown.kind = any(w.except_kinds)), false)
    from jobq_private.live_worker as w
    where jobq_private.serves(w.queues, is_unknown.queue)
    and not exists (
        select from jobq_private.kind as k where k.kind = is_unknown.kind and k.run is not null
    )
$$;

-- Purpose: how a job was scheduled, as the HTTP API calls it: IMMEDIATE, DELAYED or
-- CRON.
-- Invariant: reads only when a job of a paused endpoint was due. A DELAYED job has this
-- in its metadata, since run_at changes when it is released or retried.
create or replace function jobq_private.job_trigger(job jobq.job)
returns text
language plpgsql
stable
as $$
declare
    _due timestamptz := job.run_at;
begin
    if job.run_at = jobq_private.parked_until() then
        _due := coalesce(
            (select p.run_at from jobq_private.parked_job as p where p.job_id = job.job_id), _due
        );
    end if;
    return case
        when job.schedule_id is not null then 'CRON'
        when job.metadata ->> 'trigger' = 'DELAYED' then 'DELAYED'
        -- Before its first attempt ends, run_at is the requested time.
        when _due > job.created_at and job.last_error is null
            and (job.attempt = 0 or job.attempt = 1 and job.state <> 'queued') then 'DELAYED'
        else 'IMMEDIATE'
    end;
end
$$;

-- Purpose: how many jobs of a queue are claimed before the given one.
-- Invariant: in the order of claim(); two ranges of job_ready_idx, each counted up to
-- 10,001. The job itself is due, so jobs before it need no comparison with now: a scan
-- with two upper bounds on due_at would continue to the later one.
create or replace function jobq_private.jobs_ahead(
    queue text, priority integer, due_at timestamptz, job_id uuid
)
returns bigint
language sql
stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*)
    from (
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority = jobs_ahead.priority
            and (j.due_at, j.job_id) < (jobs_ahead.due_at, jobs_ahead.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority > jobs_ahead.priority
            and j.due_at <= statement_timestamp()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;

-- Purpose: problems in the table of live jobs.
create or replace function jobq_private.jobs_health()
returns setof jobq_private.finding
language sql
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select 'leases', count(*) = 0, format('%s leases expired more than 10 s ago', count(*)), null
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    select 'queues', false, u.queue, null from jobq_private.unserved_queues() as u
    union all
    select 'kinds', false, format('%s in queue %s', u.kind, u.queue), null
    from jobq_private.unknown_kinds() as u
    union all
    select
        'waiting', false,
        format('queue %s: a job has been due since %s%s', o.queue,
            date_trunc('second', o.since), ' (' || o.reason || ': ' || o.explanation || ')'), null
    from jobq_private.overdue_queues() as o
    union all
    select
        'moves', false,
        format('%s jobs left for shard %s at %s and have not arrived', count(*),
            m.shard_id, date_trunc('second', min(m.moved_at))),
        format('finish it: jobq cluster move --database "$ROUTER" %s --to %s', s.shard_id, m.shard_id)
    from jobq_private.moved_job as m
    cross join jobq_private.setting as s
    where m.job is not null and m.moved_at < now() - interval '1 min'
    group by s.shard_id, m.shard_id
    union all
    (
        select
            'rows', false,
            format('job_id %s, which is %s%s', j.job_id, j.state, case
                when j.state = 'running' then ' without a lease'
                when j.state in ('queued', 'retrying') then ', but claims do not see it'
            end), null
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit 1000
    )
$$;

-- Purpose: of each queue how many keys have work, by priority, and how many of these
-- are closed.
create or replace function jobq_private.key_counts()
returns table (queue text, waiting_keys bigint, closed_keys bigint)
language sql
stable
as $$
    select k.queue, count(*), count(*) filter (where not k.is_open)
    from (
        select w.queue, bool_or(w.state = 'open') as is_open
        from jobq_private.waiting_key as w
        group by w.queue, w.key_id, w.priority
    ) as k
    group by k.queue
$$;

-- Purpose: a list as text: whole items up to 500 characters, and the number of the
-- others.
-- Invariant: always contains the first item, up to 2,000 characters.
create or replace function jobq_private.listed(parts text[], separator text default ', ')
returns text
language sql
immutable
as $$
    select
        string_agg(left(p.part, 2000), listed.separator order by p.nth) filter (where p.fits)
        || coalesce(' and ' || nullif(count(*) filter (where not p.fits), 0) || ' more', '')
    from (
        select
            n.part, n.nth,
            n.nth = 1 or sum(length(n.part || listed.separator)) over (order by n.nth) <= 500 as fits
        from unnest(listed.parts) with ordinality as n (part, nth)
    ) as p
$$;

-- Purpose: the workers that were seen within the last minute.
create or replace view jobq_private.live_worker as
select w.worker, w.queues, w.except_kinds, w.release, w.stuck
from jobq_private.worker as w
where w.seen_at > now() - interval '1 min';

comment on view jobq_private.live_worker is 'the workers that were seen within the last minute.';

-- Purpose: sessions that have locked jobq's tables and block claims and enqueues.
-- Invariant: reads only the table of locks, so it never waits.
create or replace function jobq_private.locks_health()
returns setof jobq_private.finding
language sql
as $$
    select
        'locks', false,
        format(
            '%s holds %s on %s%s', coalesce('pid ' || l.pid, 'a prepared transaction'), l.mode,
            l.relation::regclass, ' for ' || date_trunc('second', clock_timestamp() - a.xact_start)
        ),
        null
    from pg_locks as l
    join pg_database as d on d.oid = l.database and d.datname = current_database()
    join pg_class as c on c.oid = l.relation
    left join pg_stat_activity as a on a.pid = l.pid
    where l.granted
    and l.mode in (
        'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'
    )
    and l.pid is distinct from pg_backend_pid()
    and c.relkind in ('r', 'p')
    and c.relnamespace in ('jobq'::regnamespace, 'jobq_private'::regnamespace)
    -- maintain() and deployments hold such locks for less than a second.
    and coalesce(a.xact_start < clock_timestamp() - interval '1 s', true)
    order by l.pid, l.relation::regclass::text
$$;

-- Purpose: the id at which a search of max_looked jobs, newest first and created before
-- a given one, ends; null if there are no more.
-- Invariant: counts the jobs that a search for these states reads, by descents of
-- indexes in the order of ids, whatever the statistics; running jobs are few and have
-- their own index.
create or replace function jobq_private.look_floor(
    states text[], oldest uuid, before uuid, max_looked integer
)
returns uuid
language sql
stable
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashagg = off
as $$
    with looked as (
        (
            select j.job_id
            from jobq_private.job as j
            where (states is null or states && '{blocked,queued,retrying}')
            and j.job_id < before and j.job_id >= oldest
            order by j.job_id desc
            limit max_looked + 1
        )
        union all
        select r.job_id
        from (
            select j.job_id
            from jobq_private.job as j
            where j.state = 'running'
            and 'running' = any(states) and not states && '{blocked,queued,retrying}'
            offset 0
        ) as r
        where r.job_id < before and r.job_id >= oldest
        union all
        (
            select a.job_id
            from jobq_private.job_archive as a
            where (states is null or 'succeeded' = any(states))
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked + 1
        )
        union all
        select r.job_id
        from unnest('{dead,cancelled}'::text[]) as s (state)
        cross join lateral (
            select a.job_id
            from jobq_private.job_archive as a
            where s.state = any(states) and 'succeeded' <> all(states)
            and a.state = s.state and a.state <> 'succeeded'
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked + 1
        ) as r
    )
    select f.ids[1]
    from (
        select array(
            select l.job_id from looked as l order by l.job_id desc offset max_looked - 1 limit 2
        ) as ids
    ) as f
    where cardinality(f.ids) = 2
$$;

-- Purpose: whether maintain() and schedules work.
-- Invariant: each part is one index probe or a statistic.
create or replace function jobq_private.maintenance_health()
returns setof jobq_private.finding
language sql
as $$
    select
        'maintenance', false,
        format('%s failed %s times, last at %s: %s %s',
            f.task, f.failures, f.failed_at, f.sqlstate, f.error), null
    from jobq_private.failed_task as f
    union all
    select
        'maintenance', false,
        format('%s blocks maintain(), which last finished at %s',
            coalesce('pid ' || l.pid, 'a prepared transaction'), h.rolled_to), null
    from pg_locks as l
    join pg_database as d on d.oid = l.database and d.datname = current_database()
    cross join jobq_private.history_mark as h
    where l.locktype = 'advisory'
    and l.classid = jobq_private.lock_class('maintaining')::oid
    and l.granted
    and h.rolled_to < now() - interval '5 min'
    union all
    (
        select
            'schedules', false,
            format('%s should have fired at %s: %s', s.name, s.next_run_at, s.failure), null
        from jobq_private.schedule as s
        where s.retry_at is not null and s.status = 'active'
        order by s.name
    )
    union all
    select
        'partitions', t.found is not null,
        format('the archive partition of tomorrow, %s, is %s', t.day,
            case when t.found is null then 'missing' else 'ready' end), null
    from to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD') as d (day)
    cross join lateral (select d.day, to_regclass('jobq_private.job_archive_' || d.day) as found) as t
$$;

-- Purpose: the jobs between two ids that match a filter; null matches all.
-- Invariant: PostgreSQL inlines it, so with a custom plan it reads only what the given
-- filters need. Inside: the text of an id contains only hexadecimal digits and dashes.
create or replace function jobq_private.match_jobs(
    states text[], oldest uuid, before uuid, kind text default null, queue text default null,
    metadata jsonb default null, error_code text default null, trigger text default null,
    idempotency_key text default null, worker text default null, payload jsonb default null,
    search text default null, batch_id uuid default null, job_ids uuid[] default null
)
returns setof jobq.job
language sql
stable
as $$
    select j.*
    from jobq.job as j
    where j.job_id < before and j.job_id >= oldest
    and (states is null or j.state = any(states))
    and (j.finished_at is not null or states <@ '{succeeded,dead,cancelled}' is not true)
    and (match_jobs.job_ids is null or j.job_id = any(match_jobs.job_ids))
    and (match_jobs.kind is null or j.kind = match_jobs.kind)
    and (match_jobs.queue is null or j.queue = match_jobs.queue)
    and (match_jobs.metadata is null or j.metadata @> match_jobs.metadata)
    and (error_code is null or j.last_error_code = error_code)
    and (trigger is null or jobq_private.job_trigger(j) = trigger)
    and (match_jobs.idempotency_key is null or j.idempotency_key = match_jobs.idempotency_key)
    and (match_jobs.worker is null or j.worker = match_jobs.worker)
    and (match_jobs.payload is null or j.payload @> match_jobs.payload)
    and (match_jobs.batch_id is null or j.batch_id = match_jobs.batch_id)
    and (
        search is null
        or j.job_id::text like substring(lower(search) from '^[0-9a-f-]{4,36}$') || '%'
        or j.job_id::text like '%' || substring(lower(search) from '^[0-9a-f-]{4,36}$')
        or search in (j.idempotency_key, j.dedup_key, j.concurrency_key)
        or position(lower(search) in lower(j.last_error)) > 0
    )
$$;

-- Purpose: a time in ISO 8601 with the offset of a zone.
-- Invariant: depends only on the zone database; uses UTC if the server no longer has
-- the zone, so that such a schedule can still be shown.
create or replace function jobq_private.moment_in(moment timestamptz, time_zone text)
returns text
language plpgsql
stable
as $$
declare
    _shown timestamp;
    _ahead interval;
begin
    _shown := moment at time zone time_zone;
    _ahead := _shown - (moment at time zone 'UTC');
    return rtrim(rtrim(to_char(_shown, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')
        || case when _ahead < interval '0' then '-' else '+' end
        || left(greatest(_ahead, -_ahead)::text, 5);
exception
    when invalid_parameter_value then
        return jobq_private.moment_in(moment, 'UTC');
end
$$;

-- Purpose: an estimate of the multixact members that the server keeps: they share one
-- bounded space, and PostgreSQL reports neither its size nor its use.
-- Invariant: reads at most 200 multixacts, evenly spread over those that are kept, none
-- older than the last checkpoint or unknown to all databases.
create or replace function jobq_private.multixact_members()
returns bigint
language sql
stable
as $$
    select coalesce(round(avg(s.members) * max(k.kept)), 0)::bigint
    from (
        select
            c.next_multixact_id::text::bigint as next,
            least(mxid_age(c.oldest_multi_xid), (
                select max(mxid_age(d.datminmxid)) from pg_database as d
            )) - mxid_age(c.next_multixact_id) as kept
        from pg_control_checkpoint() as c
    ) as k
    cross join generate_series(1, least(k.kept, 200)) as n
    cross join lateral (
        select count(*) as members
        from pg_get_multixact_members((
            greatest(1, (k.next - n::bigint * k.kept / least(k.kept, 200) + 4294967296)
                % 4294967296)
        )::text::xid)
    ) as s
$$;

-- Purpose: the queues in which jobs have been due the longest, for more than 5 minutes, and
-- why the first job does not run.
-- Invariant: reads the first hundred jobs of each queue. 20 queues at most, of which it
-- explains five: a finding shows no more.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.overdue_queues()
returns table (queue text, since timestamptz, reason text, explanation text)
language sql
stable
as $$
    select c.queue, c.oldest as since, e.reason, e.explanation
    from (
        select w.queue, w.oldest, row_number() over (order by w.oldest) as n
        from jobq_private.waiting_counts(100) as w
        where w.oldest < now() - interval '5 min'
        order by w.oldest
        limit 20
    ) as c
    left join lateral (
        select x.reason, x.explanation
        from (
            select h.job_id
            from jobq_private.head_jobs(c.queue, 101, statement_timestamp()) as h
            where c.n <= 5
            order by h.run_at
            limit 1
        ) as j
        cross join lateral jobq.explain(j.job_id) as x
        limit 1
    ) as e on true
    order by c.n
$$;

-- Purpose: the checks of one part of health(); if the part fails, a row with the
-- reason.
-- Invariant: changes nothing. Catches OTHERS, so that one part does not prevent the
-- others. Names are listed with commas, sentences with semicolons.
create or replace function jobq_private.part_health(
    part text, client_time timestamptz, release text
)
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language plpgsql
as $$
begin
    return query
    select
        c.subject, coalesce(bool_and(f.is_ok), true), c.severity,
        case
            when count(f.finding) = 0 then c.fine
            else format(
                c.found,
                jobq_private.listed(
                    array_agg(f.finding order by f.n),
                    case c.found when '%s' then '; ' else ', ' end
                ),
                count(f.finding)
            )
        end,
        coalesce(string_agg(f.remedy, '; ' order by f.n), c.remedy)
    from jobq_private.health_check as c
    left join jobq_private.findings(part_health.part, client_time, release)
        with ordinality as f (subject, is_ok, finding, remedy, n) on f.subject = c.subject
    where c.part = part_health.part
    group by c.subject, c.severity, c.fine, c.found, c.remedy
    having c.fine is not null or count(f.finding) > 0;
exception
    when others then
        return query select
            part_health.part, false, 'failure',
            format('could not be checked: %s (%s)%s', sqlerrm, sqlstate, case
                when sqlstate = '55P03'
                then (select '; ' || l.finding from jobq_private.locks_health() as l limit 1)
            end),
            case when sqlstate = '55P03' then 'end the session that holds the lock'
                else 'run jobq deploy, which repairs the schema' end;
end
$$;

-- Purpose: the numbers of jobs of each queue that has jobs, is declared, or has a worker.
-- Invariant: counts running, blocked and dead jobs up to `most` each over all queues,
-- dead ones from the newest; null counts all. goes_on names the numbers that may be
-- larger. Waiting jobs and ends_at are those of waiting_counts().
create or replace function jobq_private.queue_figures(
    most integer default null, first text default null, max_queues integer default null
)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, running bigint, blocked bigint,
    dead bigint, oldest timestamptz, goes_on text[], ends_at integer
)
language sql
stable
as $$
    with waiting as materialized (
        select w.* from jobq_private.waiting_counts(coalesce(most, 10000), first, max_queues) as w
    ),
    counted as materialized (
        select
            c.queue,
            coalesce(sum(c.jobs) filter (where c.state = 'running'), 0)::bigint as running,
            coalesce(sum(c.jobs) filter (where c.state = 'blocked'), 0)::bigint as blocked,
            coalesce(sum(c.jobs) filter (where c.state = 'dead'), 0)::bigint as dead,
            array_agg(c.state order by c.state desc) filter (where c.is_cut) as goes_on
        from jobq_private.count_states(most) as c
        group by c.queue
    )
    select
        n.queue, coalesce(w.queued, 0), coalesce(w.scheduled, 0), coalesce(w.retrying, 0),
        coalesce(c.running, 0), coalesce(c.blocked, 0), coalesce(c.dead, 0), w.oldest,
        case when w.is_exact is false then '{queued,scheduled,retrying}' else '{}'::text[] end
            || coalesce(c.goes_on, '{}'),
        coalesce(w.ends_at, most)
    from (
        select w.queue from waiting as w
        union select c.queue from counted as c
        union select q.queue from jobq_private.queue as q
        union
        select q.queue
        from jobq_private.worker as k
        cross join lateral unnest(k.queues) as q (queue)
        where right(q.queue, 1) <> '*'
    ) as n
    left join waiting as w on w.queue = n.queue
    left join counted as c on c.queue = n.queue
    where first is null or n.queue >= first
    order by n.queue
    limit max_queues
$$;

-- Purpose: the metrics of all queues together that cover the last minutes, for metrics().
-- Invariant: reads the newest 5,000 jobs, the newest 1,000 that ended, and ten minutes
-- of attempts. Without data, a rate has no row.
create or replace function jobq_private.recent_rates()
returns table (name text, value double precision)
language sql
stable
as $$
    select 'lost_attempts', count(*)
    from jobq_private.attempt as t
    where t.finished_at > statement_timestamp() - interval '10 min' and t.error_code = 'LEASE_EXPIRED'
    union all
    select 'enqueue_qps', case
        when count(*) < 5000 then count(*) / 60.0
        else 5000 / greatest(0.001, extract(epoch from
            statement_timestamp() - jobq_private.id_time((array_agg(s.job_id))[5000])))
    end
    from (
        select j.job_id
        from jobq.job as j
        where j.job_id >= jobq_private.id_floor(statement_timestamp() - interval '1 min')
        order by j.job_id desc
        limit 5000
    ) as s
    union all
    select m.name, m.value
    from (
        select
            percentile_cont(0.95) within group (
                order by extract(epoch from r.finished_at - r.created_at)
            ) as latency,
            avg((r.state = 'dead')::integer)::double precision as failed
        from (
            select a.state, a.created_at, a.finished_at
            from jobq_private.job_archive as a
            where a.state in ('succeeded', 'dead')
            and a.finished_at > statement_timestamp() - interval '2 days'
            order by a.job_id desc
            limit 1000
        ) as r
        where r.finished_at > statement_timestamp() - interval '5 min'
    ) as s
    cross join lateral (
        values ('job_latency_p95_seconds', s.latency), ('fail_rate', s.failed)
    ) as m (name, value)
    where m.value is not null
$$;

-- Purpose: record the objects of jobq's schemas and their release.
create or replace function jobq_private.record_release(release text)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    delete from jobq_private.deployed_object;
    insert into jobq_private.deployed_object (object, sum)
    select o.object, md5(coalesce(o.definition, '')) from jobq_private.schema_objects() as o
    union all
    select 'release', record_release.release
$$;

-- Purpose: problems with standbys, slots and publications.
create or replace function jobq_private.replication_health()
returns setof jobq_private.finding
language sql
as $$
    select
        'standby', false,
        'this is a standby: it accepts no jobs, and some checks need the primary', null
    where pg_is_in_recovery()
    union all
    (
        select
            'wal', l.bytes <= 4 * pg_size_bytes(current_setting('max_wal_size')),
            format('slot %s retains %s of WAL', r.slot_name, pg_size_pretty(l.bytes)), null
        from pg_replication_slots as r
        cross join lateral pg_wal_lsn_diff(
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
            r.restart_lsn
        ) as l (bytes)
        where r.restart_lsn is not null
        order by l.bytes desc
        limit 1
    )
    union all
    select c.subject, c.is_ok, c.finding, null
    from substr(current_setting('synchronous_standby_names'), 1, 200) as s (required)
    cross join (
        select
            count(*) filter (where w.state is distinct from 'backup' and not exists (
                select from pg_replication_slots as l
                where l.active_pid = w.pid and l.slot_type = 'logical'
            )) as connected,
            count(*) filter (where w.sync_state in ('sync', 'quorum')) as confirming
        from pg_stat_replication as w
    ) as r
    cross join lateral (
        values
        ('failover', r.connected = 0 or s.required <> '' or pg_is_in_recovery(), case
            when r.connected = 0 then 'no standby is connected'
            when s.required <> '' then 'commits wait for ' || s.required
            else format('%s are connected, and no commit waits for them', r.connected)
        end),
        ('confirmation', false, case
            when s.required <> '' and r.confirming = 0 and not pg_is_in_recovery()
            then format('every commit waits for %s, and none of them is connected', s.required)
        end)
    ) as c (subject, is_ok, finding)
    where c.finding is not null
    union all
    (
        select 'publication', false, format('%s by %s', p.tablename, p.pubname), null
        from pg_publication_tables as p
        where p.schemaname = 'jobq_private' and p.tablename in ('job', 'worker')
        order by p.pubname, p.tablename
    )
$$;

-- Purpose: update the queue's history up to the last full minute, delete old rows, and
-- count the waiting jobs of long queues.
-- Invariant: at most ten minutes per call, each minute once: the row with the position
-- is locked. Counts a minute ten seconds after its end, so that calls in progress are
-- included. If grants by queue are enforced, only a login that holds all queues does
-- it.
create or replace function jobq_private.roll_up()
returns bigint
language plpgsql
set jit = off
as $$
declare
    _since timestamptz;
    _until constant timestamptz := date_trunc('minute', clock_timestamp() - interval '10 s');
    _to timestamptz;
    _rows bigint := 0;
    _width record;
begin
    if row_security_active('jobq_private.job') and not coalesce(
        (select h.any_of && '{*}' from jobq_private.held_queue as h), false
    ) then
        return 0;
    end if;
    select greatest(m.rolled_to, _until - interval '3 h') into _since
    from jobq_private.history_mark as m
    where m.rolled_to < _until
    for update skip locked;
    if not found then
        return 0;
    end if;

    _to := least(_until, _since + interval '10 min');
    for _width in
        select *
        from (
            values (1, null::integer, interval '3 h'), (10, 1, '50 h'), (60, 10, '32 days')
        ) as w (minutes, narrow, kept)
    loop
        _rows := _rows
            + jobq_private.roll_up_buckets(_width.minutes, _width.narrow, _since, _to);
        delete from jobq_private.history as h
        where h.minutes = _width.minutes and h.bucket < _until - _width.kept;
        delete from jobq_private.latency as l
        where l.minutes = _width.minutes and l.bucket < _until - _width.kept;
    end loop;
    perform jobq_private.count_waiting();
    update jobq_private.history_mark as m set rolled_to = _to;
    return _rows;
end
$$;

-- Purpose: store the history and latencies of the buckets of a width that end between two
-- times: minutes from the jobs, wider ones from narrow ones. Returns how many rows of minutes.
-- Invariant: for each bucket at most 20 pairs of queue and kind, the rest as (other).
-- Minutes are added to the totals of some 500 queues, which only grow.
create or replace function jobq_private.roll_up_buckets(
    minutes integer, narrow integer, since timestamptz, until timestamptz
)
returns bigint
language sql
as $$
    with events as materialized (
        select e.* from jobq_private.bucket_events(minutes, narrow, since, until) as e
    ),
    ranked as (
        select e.bucket, e.queue, e.kind,
            coalesce(sum(e.jobs) filter (where e.event = 'enqueued'), 0) as enqueued,
            coalesce(sum(e.jobs) filter (where e.event = 'succeeded'), 0) as succeeded,
            coalesce(sum(e.jobs) filter (where e.event = 'failed'), 0) as failed,
            coalesce(sum(e.jobs) filter (where e.event = 'dead'), 0) as dead,
            coalesce(sum(e.jobs) filter (where e.event = 'cancelled'), 0) as cancelled,
            row_number() over (
                partition by e.bucket
                order by sum(e.jobs) filter (where e.event in ('enqueued', 'succeeded')) desc nulls last,
                    e.queue, e.kind
            ) as place
        from events as e
        where e.queue is not null
        group by e.bucket, e.queue, e.kind
    ),
    stored as (
        insert into jobq_private.history (
            minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
        )
        select roll_up_buckets.minutes, r.bucket, case when r.place <= 20 then r.queue else '(other)' end,
            case when r.place <= 20 then r.kind else '(other)' end,
            sum(r.enqueued), sum(r.succeeded), sum(r.failed), sum(r.dead), sum(r.cancelled)
        from ranked as r
        group by 2, 3, 4
        on conflict on constraint history_pkey do nothing
        returning queue, enqueued, succeeded, failed, dead, cancelled
    ),
    added as (
        insert into jobq_private.total as t (queue, enqueued, succeeded, failed, dead, cancelled)
        select
            case
                when (select count(*) from jobq_private.total) < 500
                or exists (select from jobq_private.total as o where o.queue = s.queue)
                then s.queue
                else '(other)'
            end,
            sum(s.enqueued), sum(s.succeeded), sum(s.failed), sum(s.dead), sum(s.cancelled)
        from stored as s
        where roll_up_buckets.minutes = 1
        group by 1
        order by 1
        on conflict on constraint total_pkey do update
        set
            enqueued = t.enqueued + excluded.enqueued,
            succeeded = t.succeeded + excluded.succeeded,
            failed = t.failed + excluded.failed,
            dead = t.dead + excluded.dead,
            cancelled = t.cancelled + excluded.cancelled
    ),
    timed as (
        insert into jobq_private.latency (minutes, bucket, counts)
        select roll_up_buckets.minutes, m.bucket, array_agg(coalesce(c.jobs, 0) order by k)
        from (select distinct e.bucket from events as e where e.class is not null) as m
        cross join generate_series(0, 49) as k
        left join (
            select e.bucket, e.class, sum(e.jobs) as jobs
            from events as e
            where e.class is not null
            group by e.bucket, e.class
        ) as c on c.bucket = m.bucket and c.class = k
        group by m.bucket
        on conflict on constraint latency_pkey do nothing
    )
    select count(*) from stored where roll_up_buckets.minutes = 1
$$;

-- Purpose: for schema_objects(): owners other than jobq_owner, policies, privileges of
-- jobq's roles and of PUBLIC, and comments.
-- Invariant: reads only; partitions appear only with their owners.
create or replace function jobq_private.schema_access(prefix text)
returns table (rank integer, made oid, object text, definition text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    with space as (
        select n.* from pg_namespace as n
        where n.nspname ~ format('^%s(_http|_internal|_private)?$', prefix)
    ),
    thing (catalog, oid, kind, name, owner, acl) as (
        select 'pg_namespace'::regclass, s.oid, 'schema', quote_ident(s.nspname), s.nspowner,
            coalesce(s.nspacl, acldefault('n', s.nspowner))
        from space as s
        union all
        select 'pg_proc', p.oid, 'routine', p.oid::regprocedure::text, p.proowner,
            coalesce(p.proacl, acldefault('f', p.proowner))
        from pg_proc as p
        join space as s on s.oid = p.pronamespace
        union all
        select null, t.oid, 'type', t.oid::regtype::text, t.typowner, null
        from pg_type as t
        join space as s on s.oid = t.typnamespace
        where t.typtype in ('d', 'e')
        union all
        select case when not c.relispartition then 'pg_class'::regclass end, c.oid,
            case c.relkind when 'S' then 'sequence' when 'c' then 'type' when 'v' then 'view' else 'table' end,
            c.oid::regclass::text, c.relowner, case when not c.relispartition then c.relacl end
        from pg_class as c
        join space as s on s.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'S', 'c')
    )
    select 2, t.oid, format('owner of %s %s', t.kind, t.name), t.owner::regrole::text
    from thing as t
    where t.owner <> (select g.oid from pg_roles as g where g.rolname = 'jobq_owner')
    and not exists (
        -- A column's sequence has the owner of its table.
        select from pg_depend as d
        where t.kind = 'sequence' and d.classid = 'pg_class'::regclass and d.objid = t.oid
        and d.deptype in ('a', 'i') and d.refobjsubid > 0
    )
    union all
    select 7, p.oid, format('policy %I on %s', p.polname, t.name), concat_ws(
        ' ', format('create policy %I on %s', p.polname, t.name),
        case when not p.polpermissive then 'as restrictive' end,
        'for ' || case p.polcmd
            when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all'
        end,
        'using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
        'with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'
    )
    from thing as t
    join pg_policy as p on p.polrelid = t.oid and t.catalog = 'pg_class'::regclass
    union all
    select 8, t.oid, g.statement, g.statement
    from thing as t
    cross join lateral aclexplode(t.acl) as a
    left join pg_roles as r on r.oid = a.grantee
    cross join lateral format('grant %s on %s %s to %s', lower(a.privilege_type),
        replace(t.kind, 'view', 'table'), t.name, coalesce(r.rolname, 'public')) as g (statement)
    where a.grantee <> t.owner and coalesce(r.rolname, 'public') in (
        'public', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
    )
    union all
    select 9, c.objoid, format('comment on %s %s', k.kind, i.identity),
        format('comment on %s %s is %L', k.kind, i.identity, c.description)
    from thing as t
    join pg_description as c on c.classoid = t.catalog and c.objoid = t.oid
    cross join lateral pg_identify_object(c.classoid, c.objoid, c.objsubid) as i
    cross join lateral (
        select case when c.objsubid > 0 then 'column' when i.type = 'composite type' then 'type' else i.type end
    ) as k (kind)
$$;

-- Purpose: the objects of jobq's schemas, each with a statement that creates it, or its
-- properties, in an order in which they can be created.
-- Invariant: reads only. Omits partitions, row security and storage parameters.
-- Argument prefix: the common prefix of the names of the schemas.
create or replace function jobq_private.schema_objects(prefix text default 'jobq')
returns table (object text, definition text, nth bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
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

-- Purpose: the objects of jobq's schemas that differ from the last deployment.
-- Invariant: an object that is missing, was added, is disabled or invalid, or differs otherwise.
create or replace view jobq_private.schema_difference as
select
    format('%s %s', d.object, case
        when d.found is null then 'is missing'
        when d.deployed is null then 'was added'
        else coalesce(substring(d.definition from ' -- (is \w+)$'), 'is another')
    end) as object,
    d.object ~ '^(owner|grant|comment) ' as is_detail
from (
    select coalesce(r.object, o.object) as object, o.definition, o.sum as found,
        r.sum as deployed
    from (
        select s.object, s.definition, md5(coalesce(s.definition, '')) as sum
        from jobq_private.schema_objects() as s
    ) as o
    full join jobq_private.deployed_object as r on r.object = o.object
) as d
where d.object <> 'release' and d.found is distinct from d.deployed;

comment on view jobq_private.schema_difference is 'the objects of jobq''s schemas that differ from the last deployment.';

-- Purpose: whether the schema is as deployed, and of the client's release.
-- Invariant: `schema` names every object that differs; the other checks explain some of
-- the differences. Without a given release, it is not compared.
create or replace function jobq_private.schema_health(release text)
returns setof jobq_private.finding
language sql
as $$
    (
        with different as (
            select d.object, d.is_detail
            from jobq_private.schema_difference as d
            union all
            -- Partitions, which are not compared.
            select format('trigger %I on %s is disabled', t.tgname, c.oid::regclass), false
            from pg_trigger as t
            join pg_class as c on c.oid = t.tgrelid and c.relispartition
            where c.relnamespace = 'jobq_private'::regnamespace and t.tgenabled not in ('O', 'A')
            union all
            select format('index %s is invalid', i.indexrelid::regclass), false
            from pg_index as i
            join pg_class as c on c.oid = i.indrelid and c.relispartition
            where c.relnamespace = 'jobq_private'::regnamespace and not i.indisvalid
        )
        select s.subject, false, d.object, null
        from different as d
        join (
            values
            ('schema', '^'), ('indexes', '^index '), ('constraints', '^constraint '),
            ('triggers', '^trigger '), ('owners', '^owner '),
            ('grants', '^grant (?!.* to public)'), ('public', '^grant .* to public')
        ) as s (subject, pattern) on d.object ~ s.pattern
        order by d.is_detail, d.object
    )
    union all
    select
        'release', d.is_same,
        case when d.is_same then 'the schema belongs to this release'
            else 'the deployed schema belongs to another release' end,
        null
    from (
        select exists (
            select from jobq_private.deployed_object as o
            where o.object = 'release' and o.sum = schema_health.release
        )
    ) as d (is_same)
    where schema_health.release is not null
$$;

-- Purpose: jobs that match a filter, newest first. After 100,000 jobs without max_jobs
-- matches, the last row has only a job_id, to pass as `before`. null matches all.
-- Invariant: reads a thousand jobs first, so that a page that fills quickly is cheap,
-- and at most 100,000, so that a filter without matches is bounded.
create or replace function jobq_private.search_jobs(
    states text[], kind text, queue text, metadata jsonb, idempotency_key text, trigger text,
    error_code text, oldest uuid, before uuid, max_jobs integer
)
returns setof jobq.job
language plpgsql
stable
set plan_cache_mode = force_custom_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _most constant integer := 100000;
    _since constant uuid := coalesce(oldest, '00000000-0000-0000-0000-000000000000');
    _until uuid := coalesce(search_jobs.before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    _looked integer := 0;
    _part integer := 1000;
    _left integer := search_jobs.max_jobs;
    _floor uuid;
    _found integer;
    _mark jobq.job;
begin
    while _looked < _most loop
        _floor := jobq_private.look_floor(search_jobs.states, _since, _until, _part);
        return query
        select m.*
        from jobq_private.match_jobs(
            search_jobs.states, coalesce(_floor, _since), _until, search_jobs.kind,
            search_jobs.queue, search_jobs.metadata, error_code, trigger,
            search_jobs.idempotency_key
        ) as m
        order by m.job_id desc
        limit _left;
        get diagnostics _found = row_count;
        _left := _left - _found;
        if _left = 0 or _floor is null then
            return;
        end if;
        _until := _floor;
        _looked := _looked + _part;
        _part := least(10 * _part, _most - _looked);
    end loop;
    _mark.job_id := _floor;
    return next _mark;
end
$$;

-- Purpose: problems in the server's configuration and sessions.
create or replace function jobq_private.server_health()
returns setof jobq_private.finding
language sql
as $$
    select
        s.name, s.setting = 'on' or s.setting like 'remote%' or s.setting = 'local',
        format('%s = %s', s.name, s.setting), null
    from pg_settings as s
    where s.name in ('fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum')
    union all
    select
        'connections', c.used < 0.9 * c.most,
        format('%s of %s connections are in use', c.used, c.most), null
    from (
        select
            count(*) as used,
            current_setting('max_connections')::integer
            - current_setting('superuser_reserved_connections')::integer as most
        from pg_stat_activity as a
        where a.backend_type = 'client backend'
    ) as c
    union all
    select
        'notifications', u.usage < 0.25,
        format('the slowest listener lags by %s %% of the queue', round(100 * u.usage::numeric)), null
    from pg_notification_queue_usage() as u (usage)
$$;

-- Purpose: settings of roles and of the database that threaten jobq's guarantees.
-- Invariant: reads the catalog, because another role's session does not show them;
-- covers roles that can act as one of jobq's.
create or replace function jobq_private.settings_health()
returns setof jobq_private.finding
language sql
as $$
    (
        select
            'role_settings', false, format('%s for %s', s.setting, h.holder),
            format('alter %s reset %s', h.holder, split_part(s.setting, '=', 1))
        from pg_db_role_setting as c
        cross join unnest(c.setconfig) as s (setting)
        left join pg_database as d on d.oid = c.setdatabase
        left join pg_roles as r on r.oid = c.setrole
        cross join lateral (
            select case
                when c.setrole = 0 and c.setdatabase <> 0 then format('database %I', d.datname)
                else concat_ws(
                    ' in database ', 'role ' || coalesce(quote_ident(r.rolname), 'all'),
                    quote_ident(d.datname)
                )
            end
        ) as h (holder)
        where s.setting ~* (
            '^((synchronous_commit|row_security)=(off|false|no|0)|session_replication_role=replica'
            || '|default_transaction_read_only=(on|true|yes|1))$'
        )
        and (c.setdatabase = 0 or d.datname = current_database())
        and (c.setrole = 0 or exists (
            select from pg_roles as g
            where g.rolname in ('jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator')
            and pg_has_role(c.setrole, g.oid, 'member')
        ))
        order by s.setting, r.rolname, d.datname
    )
    union all
    select
        'connect', not (c.relrowsecurity and p.is_open),
        case when p.is_open then 'every role of the server may connect to this database'
            else 'only roles that were granted it may connect to this database' end,
        format('revoke connect on database %I from public, and grant it to the tenants',
            current_database())
    from pg_class as c
    cross join has_database_privilege('public', current_database(), 'connect') as p (is_open)
    where c.oid = 'jobq_private.job'::regclass
$$;

-- Purpose: a time before which no end can be added to the archive.
-- Invariant: a transaction that ends jobs locks the archive (ROW EXCLUSIVE) before it
-- reads the clock, and releases the lock when its changes are visible (see
-- archive_jobs). So once all transactions are gone that held the lock after the clock
-- was read here, a new snapshot shows all ends before that time. Null if they are not
-- gone in time, or the caller is one of them.
create or replace function jobq_private.settled_at(patience interval)
returns timestamptz
language plpgsql
as $$
declare
    _at constant timestamptz := clock_timestamp();
    _archive constant oid := 'jobq_private.job_archive'::regclass;
    _database constant oid := (
        select d.oid from pg_database as d where d.datname = current_database()
    );
    _ending text[];
begin
    loop
        _ending := array(
            select l.virtualtransaction
            from pg_locks as l
            where l.locktype = 'relation'
            and l.database = _database
            and l.relation = _archive
            and l.mode = 'RowExclusiveLock'
            and l.granted
            and (_ending is null or l.virtualtransaction = any(_ending))
        );
        if _ending = '{}' then
            return _at;
        elsif clock_timestamp() > _at + patience then
            return null;
        end if;
        perform pg_sleep(0.002);
    end loop;
end
$$;

-- Purpose: sessions, replication slots and prepared transactions that hold back vacuum.
-- Invariant: members of pg_read_all_stats see the pid of a session; others only its
-- age.
create or replace view jobq_private.snapshot_holder as
select
    g.holder, age(g.xmin) as age, g.began_at,
    age(g.xmin) < 1000000
    and coalesce(now() - g.began_at < interval '10 min', true) as is_young
from (
    select
        format('pid %s', a.pid) as holder,
        coalesce(a.backend_xmin, a.backend_xid) as xmin, a.xact_start as began_at
    from pg_stat_activity as a
    where num_nonnulls(a.backend_xmin, a.backend_xid) > 0
    and a.pid <> pg_backend_pid()
    union all
    select format('slot %s', r.slot_name), r.xmin, null
    from pg_replication_slots as r
    where r.xmin is not null
    union all
    select format('prepared %s', p.gid), p.transaction, p.prepared
    from pg_prepared_xacts as p
) as g;

comment on view jobq_private.snapshot_holder is 'sessions, replication slots and prepared transactions that hold back vacuum.';

-- Purpose: pause a kind, or every job (*), and record it. A repeated call changes the reason if it
-- gives one, not the time of the pause.
create or replace function jobq_private.store_pause(kind text, action text, reason text)
returns void
language sql
as $$
    insert into jobq_private.paused_kind as p (kind, pause_reason)
    values (store_pause.kind, store_pause.reason)
    on conflict on constraint paused_kind_pkey do update
    set pause_reason = coalesce(excluded.pause_reason, p.pause_reason);
    select jobq_private.record_audit(store_pause.action, store_pause.kind, store_pause.reason)
$$;

-- Purpose: whether a job can be stored, claimed and finished, by a trial that is
-- undone.
-- Invariant: leaves only dead rows. Its payload is larger than a table's free space is
-- likely to be, so it detects a full disk. Raises: nothing.
-- Never: DEDUP_CONFLICT, JOB_IS_RECURRING, QUEUE_FULL, BATCH_ENDED, NULL_ARGUMENT, PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, INVALID_ARGUMENT, BATCH_NOT_FOUND, JOB_NOT_FOUND, LEASE_LOST, PAYLOAD_INVALID, since all are caught.
create or replace function jobq_private.trial_health()
returns setof jobq_private.finding
language plpgsql
as $$
declare
    _queue constant text := 'jobq.health';
    _problem text;
    _job_id uuid;
begin
    if pg_is_in_recovery() then
        return;
    end if;
    -- An undone transaction must not wait for a standby, which might never confirm it.
    perform set_config('synchronous_commit', 'local', true)
    where current_setting('synchronous_commit') <> 'off';
    begin
        _job_id := jobq.enqueue(_queue, jsonb_build_object('noise', array(
            select md5(random()::text) from generate_series(1, 1000)
        )), _queue);
        perform jobq.complete(c.job_id, c.attempt)
        from jobq.claim(array[_queue], _queue) as c
        where c.job_id = _job_id;
        raise exception using
            errcode = case when found then 'JQ999' else 'P0001' end,
            message = 'the claim returned no job';
    exception
    when lock_not_available then
        raise;  -- part_health() names the session
    when others then
        -- While grants by queue are enforced, this login may not hold the queue.
        _problem := case
            when sqlstate <> 'JQ999' and not (sqlstate = '42501' and (
                select c.relrowsecurity from pg_class as c
                where c.oid = 'jobq_private.job'::regclass
            ))
            then format('%s (%s)', sqlerrm, sqlstate)
        end;
    end;
    return query select 'trial', _problem is null,
        coalesce('a trial job failed: ' || _problem, 'a trial job can be stored, claimed and finished'),
        case
            when _problem like '%(53100)' then 'free disk space, or enlarge the disk'
            when _problem like '%(25006)' then
                'allow writes: alter database … reset default_transaction_read_only'
            else 'fix the cause of the error; jobq deploy repairs functions, constraints and grants'
        end;
end
$$;

-- Purpose: kinds with a due job that no live worker of its queue has a handler for.
-- Invariant: reads only; checks kinds that a worker has seen, among the first 20,000 due
-- jobs of all queues, but at least 100 of each.
create or replace function jobq_private.unknown_kinds()
returns table (kind text, queue text)
language sql
stable
as $$
    with lacking as materialized (
        select distinct w.queues, k.kind
        from jobq_private.live_worker as w
        cross join lateral unnest(w.except_kinds) as k (kind)
    ),
    asked as materialized (
        select q.queue
        from jobq_private.waiting_queue as q
        where exists (
            select from (select distinct l.queues from lacking as l) as s
            where jobq_private.serves(s.queues, q.queue)
        )
    ),
    share as (
        select greatest(100, 20000 / greatest(1, count(*)))::integer as most from asked
    )
    select m.kind, m.queue
    from (
        select distinct h.kind, a.queue
        from asked as a
        cross join share as s
        cross join lateral jobq_private.head_jobs(a.queue, s.most, statement_timestamp()) as h
        where h.kind in (select l.kind from lacking as l)
    ) as m
    where jobq_private.is_unknown(m.kind, m.queue)
    order by m.kind, m.queue
$$;

-- Purpose: queues whose jobs have been due for a minute without a live worker.
-- Invariant: reads only; a hundred jobs of each queue show whether one has been due. Only
-- where there are keys, limits or pauses, next_due() is asked whether a worker could start
-- one, for a hundred queues. 500 queues at most.
create or replace function jobq_private.unserved_queues()
returns table (queue text)
language sql
stable
as $$
    with served as materialized (
        select distinct k.queues from jobq_private.live_worker as k
    ),
    due as materialized (
        select w.queue, row_number() over (order by w.queue) as n
        from jobq_private.waiting_counts(100) as w
        where w.due < now() - interval '1 min'
        and not exists (
            select from served as s where jobq_private.serves(s.queues, w.queue)
        )
        and not exists (
            select from jobq_private.queue as q
            where q.queue = w.queue and q.paused_at is not null
        )
        order by w.queue
        limit 500
    )
    select d.queue
    from due as d
    left join jobq_private.queue as q on q.queue = d.queue
    where case
        when num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
            or exists (select from jobq_private.paused_kind)
            or exists (select from jobq_private.waiting_key as k where k.queue = d.queue)
        then case when d.n <= 100 then
            coalesce(jobq_private.next_due(array[d.queue]) < now() - interval '1 min', false)
        end
        else true
    end
    order by d.n
$$;

-- Purpose: obstacles to the cleanup of dead rows and old transactions.
create or replace function jobq_private.vacuum_health()
returns setof jobq_private.finding
language sql
as $$
    (
        select
            'snapshot', h.is_young,
            format('%s holds back vacuum by %s transactions%s', h.holder, h.age,
                ', for ' || date_trunc('second', now() - h.began_at)), null
        from jobq_private.snapshot_holder as h
        order by h.is_young, h.age desc, h.began_at
        limit 1
    )
    union all
    select
        'dead_tuples', t.n_dead_tup < 50000 or t.n_dead_tup < t.n_live_tup,
        format('%s dead and %s live rows in the table of live jobs', t.n_dead_tup, t.n_live_tup), null
    from pg_stat_all_tables as t
    where t.relid = 'jobq_private.job'::regclass
    union all
    select 'table_autovacuum', false, c.oid::regclass::text, null
    from pg_class as c
    cross join unnest(c.reloptions) as o (setting)
    where c.relnamespace = 'jobq_private'::regnamespace
    and o.setting ~ '^autovacuum_enabled=(off|false|no|0|f|n)$'
    union all
    select f.subject, f.age < f.most, format(f.finding, f.age), null
    from pg_database as d
    cross join lateral (
        values
        ('transaction_ids', age(d.datfrozenxid), 1000000000,
            'the oldest transaction id is %s old; at 2.1 billion all writes fail'),
        ('multixact', mxid_age(d.datminmxid), 400000000, 'the oldest multixact is %s old')
    ) as f (subject, age, most, finding)
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s multixact members are kept', m.members), null
    from jobq_private.multixact_members() as m (members)
$$;

-- Purpose: how many jobs wait in each queue, at a bounded cost.
-- Invariant: reads 100 jobs of each queue, then of longer ones up to `most` each, and
-- 5 * `most` of all together. For longer queues, which are not is_exact, returns the last
-- count of count_waiting(), or the number just read if larger. A queue is_exact if no
-- more jobs than ends_at wait. due is when the first job could be claimed.
create or replace function jobq_private.waiting_counts(
    most integer default 10000, first text default null, max_queues integer default null
)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    due timestamptz, is_exact boolean, ends_at integer
)
language plpgsql
stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _short constant integer := least(most, 100);
begin
    return query
    with head as materialized (
        select q.queue, h.*
        from (
            select w.queue from jobq_private.waiting_queue as w
            where first is null or w.queue >= first
            order by w.queue
            limit max_queues
        ) as q
        cross join lateral jobq_private.count_head(q.queue, _short, _now) as h
    ),
    share as materialized (
        select least(most, greatest(_short, (
            5 * most - coalesce(sum(h.seen) filter (where h.seen <= _short), 0)
        ) / greatest(1, count(*) filter (where h.seen > _short))))::integer as ends_at
        from head as h
    ),
    looked as (
        select h.* from head as h, share as a where h.seen <= _short or a.ends_at = _short
        union all
        select h.queue, l.*
        from head as h
        cross join share as a
        cross join lateral jobq_private.count_head(h.queue, a.ends_at, _now) as l
        where h.seen > _short and a.ends_at > _short
    )
    select
        s.queue, greatest(s.queued, c.queued), greatest(s.scheduled, c.scheduled),
        greatest(s.retrying, c.retrying), least(s.oldest, f.due), least(s.due, f.due), e.is_exact,
        a.ends_at
    from looked as s
    cross join share as a
    cross join lateral (select s.seen <= a.ends_at) as e (is_exact)
    left join jobq_private.waiting_count as c on c.queue = s.queue and not e.is_exact
    left join lateral (
        select jobq_private.first_due(s.queue, null) as due
        where not e.is_exact
        offset 0  -- so that it is called only for these queues, and once
    ) as f on f.due <= _now;
end
$$;

-- Purpose: whether workers are alive, can run the declared kinds, and are not stuck.
-- Invariant: each part is one index probe or a statistic.
create or replace function jobq_private.workers_health()
returns setof jobq_private.finding
language sql
as $$
    select
        'workers', count(*) > 0, format('%s workers were seen in the last minute', count(*)), null
    from jobq_private.live_worker as w
    union all
    (
        select
            'functions', false, format('kind %s needs %s', k.kind, coalesce(p.problem, b.bar)), null
        from jobq_private.kind as k
        cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
        cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
        where k.run is not null and coalesce(p.problem, b.bar) is not null
        order by k.kind
    )
    union all
    (
        select
            'slots', false,
            format('handlers that hang occupy %s slots of worker %s', w.stuck, w.worker), null
        from jobq_private.live_worker as w
        where w.stuck > 0
        order by w.worker
    )
    union all
    (
        select
            'endpoints', false,
            format('%s is paused since %s%s', e.endpoint, date_trunc('second', e.paused_at),
                ': ' || e.pause_reason), null
        from jobq_private.endpoint as e
        where e.paused_at is not null
        and exists (
            select from jobq_private.parked_job as p
            where p.endpoint = e.endpoint and p.run_at < now() - interval '5 min'
        )
        order by e.paused_at
    )
$$;

-- Purpose: For tests: moves waiting jobs into the past, as if this much time had
-- passed.
-- Invariant: changes run_at, expiries and deadlines of waits; not schedules and leases.
-- No role is granted it, so only the owner of the tables can call it. Raises: 22004,
-- 22023.
-- Argument by: the time, 0 to 36500 days.
-- Returns: how many jobs were moved.
-- Example: select jobq_internal.advance_clock('1 hour');
create or replace function jobq_internal.advance_clock(by interval)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
        where j.state in ('queued', 'retrying')
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.open_keys(coalesce(_moved, '{}'));
    return coalesce(cardinality(_moved), 0);
end
$$;

comment on function jobq_internal.advance_clock is 'For tests: moves waiting jobs into the past, as if this much time had passed.';

-- Purpose: All attempts. state is the job's state after the attempt, or running.
-- Invariant: each attempt is in one of three tables, so it appears once.
-- Column state: the outcome: succeeded, retrying, dead, cancelled, queued (returned), or
-- running.
-- Column result: the result of a succeeded attempt.
create or replace view jobq.attempt as
select
    t.job_id, t.attempt, t.state, t.started_at, t.finished_at,
    t.finished_at - t.started_at as duration, t.worker, t.error_code, t.error,
    null::jsonb as result, t.error_details
from jobq_private.attempt as t
union all
select
    a.job_id, a.attempt, a.state, a.claimed_at, a.finished_at,
    a.finished_at - a.claimed_at, a.worker, null, null, a.result,
    null
from jobq_private.job_archive as a
where a.state = 'succeeded'
union all
select
    j.job_id, j.attempt, j.state, j.claimed_at, null, null, j.worker, null, null, null,
    null
from jobq_private.job as j
where j.state = 'running';

grant select on jobq.attempt to jobq_reader;

comment on view jobq.attempt is 'All attempts. state is the job''s state after the attempt, or running.';

-- Purpose: Asks for notifications on jobq_events when any job ends, until end_wait().
-- The session must listen.
-- Invariant: LISTEN jobq_events must have committed before. Takes its locks (shared,
-- session) before the client reads once more with listen_events(). A transaction that
-- ends jobs locks the archive before it tests these locks, so one of the two sees the
-- other. Raises: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting_events'), 0);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
end
$$;

grant execute on function jobq.await_events to jobq_operator, jobq_reader;

comment on function jobq.await_events is 'Asks for notifications on jobq_events when any job ends, until end_wait(). The session must listen.';

-- Purpose: Cancels many waiting jobs, requests cancellation of running ones, and
-- returns the outcomes.
-- Invariant: each as by cancel(), in one transaction and few statements. Raises: 22004,
-- 22023, JQ001, JQ002.
-- Argument job_ids: these jobs; none may have ended. Other filters apply too.
-- Argument state: only jobs in this state: blocked, queued, retrying or running; null means all.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Argument reason: reason, stored with each job, at most 512 characters.
-- Column outcome: cancelled or cancel_requested; in a dry run the state of the job.
-- Example: select * from jobq.cancel_many(queue => 'default', reason => 'wrong input', dry_run => true);
create or replace function jobq.cancel_many(
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    state text default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns table (job_id uuid, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
begin
    _chosen := jobq_private.choose_jobs(
        cancel_many.job_ids, cancel_many.queue, cancel_many.kind, cancel_many.metadata,
        cancel_many.max_jobs, cancel_many.dry_run, cancel_many.reason,
        '{blocked,queued,retrying,running}', cancel_many.state
    );
    if not cancel_many.dry_run then
        return query
        select c.* from jobq_private.cancel_jobs(_chosen, cancel_many.reason) as c;
        return;
    end if;
    return query
    select c.job_id, j.state
    from unnest(_chosen) as c (job_id)
    join jobq_private.job as j on j.job_id = c.job_id;
end
$$;

grant execute on function jobq.cancel_many to jobq_operator;

comment on function jobq.cancel_many is 'Cancels many waiting jobs, requests cancellation of running ones, and returns the outcomes.';

-- Purpose: Changes run time, priority, queue, timeout, attempts or payload of waiting
-- jobs, and returns their ids.
-- Invariant: all or none, and only while they wait: skips a job that a worker claims
-- meanwhile. The payload of a job that has run cannot change, nor the concurrency key
-- that a payload contains. A job that waits for an event is due at its deadline at the
-- latest.
-- Raises: 22004, 22023, 42501, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument changes: a JSON object with any of run_at (an instant, or `"now"`), priority, queue,
-- payload, timeout, expires_at and max_attempts (above the attempts already used); omitted and null members do not change anything. run_at must
-- be before expires_at.
-- Argument job_ids: these jobs; each must be waiting. Other filters apply too.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.change_many('{"run_at": "now", "priority": 5}', kind => 'send_email', dry_run => true);
create or replace function jobq.change_many(
    changes jsonb,
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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

-- Purpose: Deletes waiting or finished jobs with their history, and returns their ids.
-- Invariant: all or none; no running job. Idempotency keys become free. Clients that wait
-- for one get an error.
-- Raises: 22004, 22023, 42501, JQ001, JQ002.
-- Argument job_ids: these jobs, waiting or ended; none may run. Other filters apply too.
-- Argument state: only jobs in this state: blocked, queued, retrying, succeeded, dead or
-- cancelled; null means those that wait, and with job_ids all.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.delete_many(queue => 'default', dry_run => true);
create or replace function jobq.delete_many(
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    state text default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
begin
    _chosen := jobq_private.choose_jobs(
        delete_many.job_ids, delete_many.queue, delete_many.kind, delete_many.metadata,
        delete_many.max_jobs, delete_many.dry_run, delete_many.reason,
        case
            when num_nonnulls(delete_many.state, delete_many.job_ids) > 0
            then '{blocked,queued,retrying,succeeded,dead,cancelled}'::text[]
            else '{blocked,queued,retrying}'
        end,
        delete_many.state
    );
    perform jobq_private.check_worked(_chosen);
    if not delete_many.dry_run then
        perform jobq_private.open_keys('{}', freed => array(
            select distinct j.key_id from jobq_private.job as j where j.job_id = any(_chosen)
        ));
        perform jobq_private.forget_jobs(_chosen);
        perform jobq_private.release_dead_keys(_chosen);
        perform jobq_private.record_audit('delete', c.job_id::text, delete_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;

grant execute on function jobq.delete_many to jobq_operator;

comment on function jobq.delete_many is 'Deletes waiting or finished jobs with their history, and returns their ids.';

-- Purpose: Explains why a job is not running, with one row per reason.
-- Invariant: reads only; the most important reason first.
-- Raises: 22004, JQ001.
-- Column reason: blocked, held_up, paused, event, release, key_busy, queue_busy, kind_busy,
-- rate_limited, budget, held, ordered_behind, scheduled, backoff, no_function, no_worker,
-- unknown_kind, slots_lost, locked, waiting, running or finished.
-- Column explanation: a description with details.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
begin
    return query select s.reason, s.explanation from jobq_private.explain_state(_job) as s;
    if _job.state not in ('queued', 'retrying') then
        return;
    end if;

    return query select p.reason, p.explanation from jobq_private.explain_pauses(_job) as p;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    return query select b.reason, b.explanation
    from jobq_private.job as j
    cross join lateral jobq_private.blocking_limits(j, clock_timestamp()) as b
    where j.job_id = _job.job_id;
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', date_trunc('second', _job.run_at),
                date_trunc('second', _job.run_at - clock_timestamp()),
                case when _job.expires_at <= _job.run_at
                    then ', but expires before, at ' || date_trunc('second', _job.expires_at) end);
        return;
    end if;
    return query
    select w.reason, w.explanation from jobq_private.explain_workers(_job) as w
    union all
    select l.reason, l.explanation from jobq_private.explain_locks(_job.job_id) as l;
    return query select 'waiting', format('%s ahead of it in queue %s', case
        when a.jobs = 1 then '1 job is'
        when a.jobs > 10000 then '10000+ jobs are'
        else a.jobs || ' jobs are'
    end, j.queue)
    from jobq_private.job as j
    cross join lateral jobq_private.jobs_ahead(
        j.queue, j.priority, coalesce(j.due_at, j.run_at), j.job_id
    ) as a (jobs)
    where j.job_id = _job.job_id;
end
$$;

grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq.explain is 'Explains why a job is not running, with one row per reason.';

-- Purpose: Returns the id of the job with an idempotency key of a kind, or null.
-- Invariant: a key outlives its job only as long as it is retained. Raises: 22004.
-- Returns: the job's id, or null.
-- Example: select jobq_internal.find_job('send_email', 'welcome-ada');
create or replace function jobq_internal.find_job(kind text, idempotency_key text)
returns uuid
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given(
        'kind and idempotency_key', num_nulls(find_job.kind, find_job.idempotency_key)
    );
    return (
        select k.job_id
        from jobq_private.idempotency_key as k
        where k.kind = find_job.kind and k.idempotency_key = find_job.idempotency_key
        and (
            k.created_at >= now() - (select g.key_retention from jobq_private.setting as g)
            or exists (select from jobq_private.job as j where j.job_id = k.job_id)
        )
    );
end
$$;

grant execute on function jobq_internal.find_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.find_job is 'Returns the id of the job with an idempotency key of a kind, or null.';

-- Purpose: Reports problems with severity and remedy: settings, snapshots, leases,
-- workers, partitions, drift, and a client's clock and release if given.
-- Invariant: reads only, except for the trial, which is undone. Each part waits at most
-- a second for a lock; a part that fails returns a row with the reason. On a standby,
-- reports what can be read there.
-- Argument client_time: the client's clock, to compare; null skips the check.
-- Argument release: the client's release, as at the end of jobq.sql, to compare; null skips the
-- check.
-- Argument part: only this part: server, vacuum, replication, locks, settings, jobs, workers,
-- maintenance, schema, clock, or trial, which stores, claims and finishes a job, and undoes
-- that; the commit of its transaction waits for no standby. null means all but the trial.
-- Raises: 22023.
-- Returns: problems first, failures before warnings.
-- Column subject: the check: snapshot, leases, workers, slots, partitions and more, see
-- [monitoring](monitoring.md).
-- Column is_ok: whether the check passed.
-- Column finding: what was found.
-- Column remedy: what to do.
-- Column severity: severity of the problem: failure (jobs are lost, stop or are unprotected) or
-- warning.
-- Example: select subject, severity, finding, remedy from jobq.health() where not is_ok;
create or replace function jobq.health(
    client_time timestamptz default null, release text default null, part text default null
)
returns table (subject text, is_ok boolean, finding text, remedy text, severity text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
set jit = off
as $$
#variable_conflict use_column
declare
    _parts constant text[] :=
        '{server,vacuum,replication,trial,locks,settings,jobs,workers,maintenance,schema,clock}'::text[];
begin
    perform jobq_private.check_argument(case
        when health.part <> all (_parts) then 'part must be one of ' || array_to_string(_parts, ', ')
    end);
    return query
    select h.subject, h.is_ok, h.finding, case when not h.is_ok then h.remedy end, h.severity
    from unnest(_parts) as p (part)
    cross join lateral jobq_private.part_health(p.part, health.client_time, health.release) as h
    where case when health.part is null then p.part <> 'trial' else p.part = health.part end
    order by h.is_ok, h.severity, h.subject;
end
$$;

grant execute on function jobq.health to jobq_operator, jobq_reader;

comment on function jobq.health is 'Reports problems with severity and remedy: settings, snapshots, leases, workers, partitions, drift, and a client''s clock and release if given.';

-- Purpose: The declared kinds and their settings.
-- Invariant: null if the queue or the default applies. Paused kinds that are not
-- declared are listed too; * stands for every job.
-- Column queue: the default queue of its jobs.
-- Column dedup_key: path of the dedup key in the payload, or several.
-- Column dead_letter_kind: kind of the job that is enqueued when a job dies.
-- Column concurrency_key: path of the concurrency key in the payload.
-- Column cost: path of the cost in the payload.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column version: version of the declaring program; null if it has none.
create or replace view jobq.kind as
select
    coalesce(k.kind, p.kind) as kind, k.queue, k.priority::integer as priority, k.max_attempts,
    k.timeout, k.lease, k.retry_preset, k.retry_strategy, k.retry_initial_delay,
    k.retry_max_delay, k.retry_jitter, k.dedup, k.dedup_period, k.dedup_max_wait,
    k.reuse_key_after_failure, k.concurrency_key, k.max_running, k.rate_limit, k.rate_period,
    k.rate_burst, k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
    k.ordered, k.on_dead, k.keep[1] as keep_succeeded, k.keep[2] as keep_dead,
    k.keep[3] as keep_cancelled, k.run, k.retry_on,
    exists (select from jobq_private.endpoint as e where e.endpoint = k.kind) as is_endpoint,
    coalesce(k.json_schema, k.payload_schema) as payload_schema, k.version,
    coalesce(k.updated_at, p.paused_at) as updated_at, k.cost, p.paused_at, p.pause_reason,
    k.dedup_key, k.dead_letter_kind
from jobq_private.kind as k
full join jobq_private.paused_kind as p on p.kind = k.kind;

grant select on jobq.kind to jobq_reader;

comment on view jobq.kind is 'The declared kinds and their settings.';

-- Purpose: Returns the attempts of a job, in order.
-- Invariant: one row for each attempt. Raises: 22004, JQ001.
-- Returns: rows of jobq.attempt.
-- Example: select attempt, state, error from jobq_internal.list_attempts(:'dead');
create or replace function jobq_internal.list_attempts(job_id uuid)
returns setof jobq.attempt
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq.get_job(list_attempts.job_id);
    return query
    select t.*
    from jobq.attempt as t
    where t.job_id = list_attempts.job_id
    order by t.attempt;
end
$$;

grant execute on function jobq_internal.list_attempts to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_attempts is 'Returns the attempts of a job, in order.';

-- Purpose: Returns a page of jobs, newest first; before is the last id of the previous
-- page.
-- Invariant: ids are ordered by time, so pages do not shift while jobs are added. A
-- search that has read 100,000 jobs before the page is full ends with a row whose state
-- is null; continue from its job_id. Raises: 22004, 22023.
-- Argument max_jobs: maximum number, 1 to 1000.
-- Returns: rows of jobq.job; the last one may be a marker with only a job_id, to pass as
-- before.
-- Example: select job_id, state from jobq.list_jobs('dead', max_jobs => 10);
create or replace function jobq.list_jobs(
    state text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_jobs integer default 50
)
returns setof jobq.job
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _states constant text[] := case when list_jobs.state is not null then array[list_jobs.state] end;
begin
    perform jobq_private.check_count('max_jobs', list_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_states(_states);
    return query
    select s.*
    from jobq_private.search_jobs(
        _states, list_jobs.kind, list_jobs.queue, null, null, null, null, null,
        list_jobs.before, list_jobs.max_jobs
    ) as s;
end
$$;

grant execute on function jobq.list_jobs to jobq_operator, jobq_reader;

comment on function jobq.list_jobs is 'Returns a page of jobs, newest first; before is the last id of the previous page.';

-- Purpose: Lists the declared kinds and their settings.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.kind, by name.
-- Example: select kind, queue, timeout from jobq_internal.list_kinds();
create or replace function jobq_internal.list_kinds()
returns setof jobq.kind
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select v.* from jobq.kind as v order by v.kind
$$;

grant execute on function jobq_internal.list_kinds to jobq_operator, jobq_reader;

comment on function jobq_internal.list_kinds is 'Lists the declared kinds and their settings.';

-- Purpose: Returns the log of a job, in order.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Example: select * from jobq_internal.list_logs(:'running');
create or replace function jobq_internal.list_logs(job_id uuid)
returns table (attempt integer, logged_at timestamptz, level text, message text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq.get_job(list_logs.job_id);
    return query
    select l.attempt, l.logged_at, l.level, l.message
    from jobq_private.job_log as l
    where l.job_id = list_logs.job_id
    order by l.logged_at, l.sequence;
end
$$;

grant execute on function jobq_internal.list_logs to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_logs is 'Returns the log of a job, in order.';

-- Purpose: The declared queues and their settings.
-- Invariant: null if the default applies. queue_stats() has their figures.
create or replace view jobq.queue as
select
    q.queue, q.priority::integer as priority, q.max_attempts, q.timeout, q.lease,
    q.retry_preset, q.max_depth, q.max_running, q.rate_limit, q.rate_period, q.rate_burst,
    q.key_max_running, q.key_rate_limit, q.key_rate_period, q.key_rate_burst, q.ordered,
    q.on_dead, q.paused_at, q.pause_reason, q.updated_at
from jobq_private.queue as q;

grant select on jobq.queue to jobq_reader;

comment on view jobq.queue is 'The declared queues and their settings.';

-- Purpose: Lists the declared queues and their settings.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.queue, by name.
-- Example: select queue, max_depth from jobq_internal.list_queues();
create or replace function jobq_internal.list_queues()
returns setof jobq.queue
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select v.* from jobq.queue as v order by v.queue
$$;

grant execute on function jobq_internal.list_queues to jobq_operator, jobq_reader;

comment on function jobq_internal.list_queues is 'Lists the declared queues and their settings.';

-- Purpose: Workers, when they were last seen, and how many jobs they run.
-- Invariant: a worker is live if it was seen within the last minute.
-- Column jobs: how many jobs it runs.
-- Column queues: the queues from which it claims.
-- Column except_kinds: kinds that it has seen and has no handler for.
-- Column release: release of its program; null if not given.
-- Column stuck: how many of its slots are occupied by hanging handlers.
-- Column started_at: when it was first seen.
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

grant select on jobq.worker to jobq_reader;

comment on view jobq.worker is 'Workers, when they were last seen, and how many jobs they run.';

-- Purpose: Lists workers, when they were last seen, and how many jobs they run.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.worker, by name.
-- Example: select worker, jobs from jobq_internal.list_workers() where is_live;
create or replace function jobq_internal.list_workers()
returns setof jobq.worker
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select w.* from jobq.worker as w order by w.worker
$$;

grant execute on function jobq_internal.list_workers to jobq_operator, jobq_reader;

comment on function jobq_internal.list_workers is 'Lists workers, when they were last seen, and how many jobs they run.';

-- Purpose: Returns a page of jobs that have ended after a cursor, each once, by queue
-- or kind.
-- Invariant: each job once, in whatever order transactions commit: a page reaches the
-- present only when every transaction that was ending jobs has ended (see settled_at).
-- It waits 100 ms for that. A call reads some 20,000 rows, so a page may be empty
-- although its cursor has moved. Reads only the archive: omits jobs whose records are
-- not kept, and jobs that were redriven before. Raises: 22004, 22023.
-- Argument after: cursor of the previous page or of an event; null starts at since.
-- Argument queues: only jobs of these queues; null means all.
-- Argument kinds: only jobs of these kinds; null means all.
-- Argument since: without after: only jobs that ended at or after this time; null means now.
-- Argument max_events: maximum number, 1 to 1000.
-- Column events: a JSON array of objects: cursor, job_id, kind, queue, state, attempts,
-- error_code, metadata, batch_id, created_at and finished_at.
-- Column cursor: cursor for the next page.
-- Column is_behind: whether more can be read now.
-- Column is_settled: false while an open transaction that has ended jobs delays later events.
-- Example: select * from jobq.listen_events(kinds => '{send_email}', since => now() - interval '1 h');
create or replace function jobq.listen_events(
    after text default null,
    queues text[] default null,
    kinds text[] default null,
    since timestamptz default null,
    max_events integer default 100
)
returns table (events jsonb, cursor text, is_behind boolean, is_settled boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    _from timestamptz;
    _job_id uuid;
    _until timestamptz;
    _to timestamptz;
    _is_full boolean;
begin
    select s.at, s.job_id into _from, _job_id
    from jobq_private.event_start(after, queues, kinds, since, max_events) as s;
    _until := jobq_private.settled_at('100 ms');
    listen_events.is_settled := _until is not null;
    _until := greatest(_until, _from);
    _to := jobq_private.event_span(
        _from, _job_id, _until, listen_events.queues, listen_events.kinds, max_events
    );
    select coalesce(jsonb_agg(e order by e.finished_at, e.job_id), '[]') into listen_events.events
    from (
        select jobq_private.event_cursor(a.finished_at, a.job_id) as cursor, a.job_id, a.kind,
            a.queue, a.state, a.attempt - a.uncounted as attempts, a.last_error_code as error_code,
            a.metadata, a.batch_id, a.created_at, a.finished_at
        from jobq_private.job_archive as a
        where a.finished_at >= _from
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (_from, _job_id)
        and (listen_events.queues is null or a.queue = any(listen_events.queues))
        and (listen_events.kinds is null or a.kind = any(listen_events.kinds))
        order by a.finished_at, a.job_id
        limit max_events
    ) as e;
    _is_full := jsonb_array_length(listen_events.events) = max_events;
    listen_events.is_behind := _to < _until or _is_full;
    listen_events.cursor := case
        when _is_full then listen_events.events -> -1 ->> 'cursor'
        when _to > _from
        then jobq_private.event_cursor(_to, '00000000-0000-0000-0000-000000000000')
        else jobq_private.event_cursor(_from, _job_id)
    end;
    return next;
end
$$;

grant execute on function jobq.listen_events to jobq_operator, jobq_reader;

comment on function jobq.listen_events is 'Returns a page of jobs that have ended after a cursor, each once, by queue or kind.';

-- Purpose: Returns metrics for Prometheus: backlog, dead jobs, rates and latency.
-- Invariant: bounded. The count of waiting jobs in long queues may be a minute old;
-- dead jobs are read by their index, and the newest few thousand ids. Rates cover the
-- last minute; latency and failures the last 1,000 jobs that ended within five minutes;
-- without data, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, blocked_jobs, expired_leases, oldest_runnable_seconds, waiting_keys,
-- closed_keys, budget_amount, budget_spent, dlq_size, jobs_enqueued, jobs_succeeded, jobs_dead, jobs_cancelled or
-- attempts_failed, which count up from the first minute on, lost_attempts, enqueue_qps,
-- job_latency_p95_seconds or fail_rate.
-- Column queue: null for metrics of all queues.
-- Column value: the value.
-- Example: select * from jobq.metrics();
create or replace function jobq.metrics()
returns table (name text, queue text, value double precision)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select m.name, f.queue, m.value::double precision
    from jobq_private.queue_figures() as f
    left join jobq_private.key_counts() as l on l.queue = f.queue
    left join (
        select j.queue, count(*) as jobs from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < clock_timestamp() group by 1
    ) as e on e.queue = f.queue
    cross join lateral (
        select f.queued + f.scheduled + f.retrying as waiting,
            f.queued + f.scheduled + f.retrying + f.running > 0 as is_live
    ) as s
    cross join lateral (
        values
        ('queue_backlog', s.waiting, s.is_live),
        ('running_jobs', f.running, s.is_live),
        ('expired_leases', coalesce(e.jobs, 0), s.is_live),
        ('oldest_runnable_seconds',
            coalesce(extract(epoch from clock_timestamp() - f.oldest), 0), s.is_live),
        ('blocked_jobs', f.blocked, f.blocked > 0),
        ('waiting_keys', l.waiting_keys, l.waiting_keys is not null),
        ('closed_keys', l.closed_keys, l.waiting_keys is not null),
        ('dlq_size', f.dead, f.dead > 0)
    ) as m (name, value, is_shown)
    where m.is_shown
    union all
    select m.name, b.scope, m.value::double precision
    from jobq_internal.list_budgets('queue', max_keys => 0) as b
    cross join lateral (
        values ('budget_amount', b.amount), ('budget_spent', b.spent)
    ) as m (name, value)
    where b.concurrency_key is null and not b.each_key
    union all
    select m.name, t.queue, m.value::double precision
    from jobq_private.total as t
    cross join lateral (
        values
        ('jobs_enqueued', t.enqueued), ('jobs_succeeded', t.succeeded),
        ('jobs_dead', t.dead), ('jobs_cancelled', t.cancelled), ('attempts_failed', t.failed)
    ) as m (name, value)
    union all
    select r.name, null, r.value from jobq_private.recent_rates() as r
$$;

grant execute on function jobq.metrics to jobq_operator, jobq_reader;

comment on function jobq.metrics is 'Returns metrics for Prometheus: backlog, dead jobs, rates and latency.';

-- Purpose: Pauses claims of jobs of a kind, in all queues. Running jobs continue.
-- Invariant: the kind need not be declared; put_kind() does not end the pause. Raises: 22004, 22023.
-- Example: select jobq.pause_kind('send_email', 'the provider is down');
create or replace function jobq.pause_kind(kind text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('kind', num_nulls(pause_kind.kind));
    perform jobq_private.check_argument(case
        when length(pause_kind.kind) not between 1 and 128 or pause_kind.kind = '*'
        then 'kind must have 1 to 128 characters, and must not be *'
        when length(pause_kind.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.store_pause(pause_kind.kind, 'pause_kind', pause_kind.reason);
end
$$;

grant execute on function jobq.pause_kind to jobq_operator;

comment on function jobq.pause_kind is 'Pauses claims of jobs of a kind, in all queues. Running jobs continue.';

-- Purpose: Pauses claims from a queue, or from all (*). Running jobs continue.
-- Invariant: declares the queue if it is not declared. Raises: 22004, 22023.
-- Argument queue: the queue; * pauses all queues, also new ones.
-- Example: select jobq.pause_queue('mail', 'the provider is down');
create or replace function jobq.pause_queue(queue text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
end
$$;

grant execute on function jobq.pause_queue to jobq_operator;

comment on function jobq.pause_queue is 'Pauses claims from a queue, or from all (*). Running jobs continue.';

-- Purpose: Returns for each queue the numbers of waiting, running, retrying and dead
-- jobs, and the longest wait.
-- Invariant: reads at most some 50,000 waiting jobs, the running ones, the dead ones,
-- and the archive's last minute. oldest_runnable is the longest time that a job has
-- been runnable.
-- Raises: nothing.
-- Column queued: number of runnable jobs.
-- Column scheduled: number of jobs that wait for their run_at.
-- Column running: how many run.
-- Column retrying: number of jobs that wait for a retry.
-- Column dead: number of dead jobs.
-- Column oldest_runnable: the longest wait of a runnable job; null if none waits.
-- Column waiting_keys: how many concurrency keys have work, by priority.
-- Column closed_keys: how many of these can start no job now: at a limit, held, or
-- without a due job.
-- Column is_exact: whether queued, scheduled and retrying are current. If more than
-- 10,000 jobs wait in a queue (fewer with many queues), they are the last count of
-- maintain(), about a minute old; before the first count, a lower bound.
-- Column blocked: number of blocked jobs.
-- Example: select * from jobq.queue_stats();
create or replace function jobq.queue_stats()
returns table (
    queue text,
    queued bigint,
    scheduled bigint,
    running bigint,
    retrying bigint,
    dead bigint,
    oldest_runnable interval,
    finished_last_minute bigint,
    is_paused boolean,
    waiting_keys bigint,
    closed_keys bigint,
    is_exact boolean,
    blocked bigint
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        n.queue, coalesce(f.queued, 0), coalesce(f.scheduled, 0), coalesce(f.running, 0),
        coalesce(f.retrying, 0), coalesce(f.dead, 0),
        case when f.oldest is not null then greatest(now() - f.oldest, interval '0') end,
        coalesce(r.finished, 0), q.paused_at is not null
            or exists (select from jobq_private.paused_kind as p where p.kind = '*'),
        coalesce(k.waiting_keys, 0), coalesce(k.closed_keys, 0),
        coalesce(not f.goes_on && '{queued}', true), coalesce(f.blocked, 0)
    from jobq_private.queue_figures() as f
    full join (
        select a.queue, count(*) as finished
        from jobq_private.job_archive as a
        where a.finished_at > now() - interval '1 min'
        group by a.queue
    ) as r on r.queue = f.queue
    cross join lateral (select coalesce(f.queue, r.queue) as queue) as n
    left join jobq_private.key_counts() as k on k.queue = n.queue
    left join jobq_private.queue as q on q.queue = n.queue
    where f.queued + f.scheduled + f.running + f.retrying + f.dead + f.blocked > 0
    or r.finished > 0
    or q.queue is not null
    order by n.queue
$$;

grant execute on function jobq.queue_stats to jobq_operator, jobq_reader;

comment on function jobq.queue_stats is 'Returns for each queue the numbers of waiting, running, retrying and dead jobs, and the longest wait.';

-- Purpose: Returns whether jobs can be enqueued (queue) and read (repo): ok, or
-- error(reason).
-- Invariant: uses what the two need; a read-only server has no queue.
-- Raises: nothing.
-- Returns: one row.
-- Column queue: ok, or error(reason).
-- Column repo: ok, or error(reason).
-- Example: select * from jobq_internal.ready();
create or replace function jobq_internal.ready()
returns table (queue text, repo text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.job limit 1;
    perform from jobq_private.setting;
    return query select
        case
            when pg_is_in_recovery() or current_setting('transaction_read_only')::boolean
            then 'error(read_only)'
            else 'ok'
        end,
        'ok';
end
$$;

grant execute on function jobq_internal.ready
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.ready is 'Returns whether jobs can be enqueued (queue) and read (repo): ok, or error(reason).';

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
    queue text default null,
    kind text default null,
    since timestamptz default '-infinity',
    error_code text default null,
    max_jobs integer default 1000,
    job_ids uuid[] default null,
    dry_run boolean default false,
    latest boolean default false
)
returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
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
        and (a.dedup is null or not exists (
            select from jobq_private.job as j
            where j.kind = a.kind and j.dedup_key = a.dedup_key and j.dedup is not null
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

-- Purpose: Returns the maximum lag of a standby, and null on a primary.
-- Invariant: reads only. Zero if everything received is replayed and the primary is
-- connected; otherwise the time since the last replayed commit.
-- Raises: nothing.
-- Returns: the lag; null on a primary.
-- Example: select jobq_internal.replica_lag();
create or replace function jobq_internal.replica_lag()
returns interval
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select case
        when not pg_is_in_recovery() then null
        when exists (select from pg_stat_wal_receiver as w where w.pid is not null)
        and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
        then interval '0'
        else greatest(clock_timestamp() - pg_last_xact_replay_timestamp(), interval '0')
    end
$$;

grant execute on function jobq_internal.replica_lag to jobq_operator, jobq_reader;

comment on function jobq_internal.replica_lag is 'Returns the maximum lag of a standby, and null on a primary.';

-- Purpose: Enqueues a copy of a finished job, with a link to it, and returns its id.
-- Invariant: the new job has the payload and options of the finished one, which stays as it is, and
-- its id as rerun_of in its metadata. It has no idempotency key, and no live job with the same dedup
-- key takes its place. Raises: 22004, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Never: INVALID_ARGUMENT, BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Returns: the id of the new job.
-- Example: select jobq.rerun(:'dead');
create or replace function jobq.rerun(job_id uuid)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job constant jobq.job := jobq.get_job(rerun.job_id);
begin
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is null
        then format('job_id %s is %s; finished jobs can be rerun', _job.job_id, _job.state)
    end);
    perform jobq_private.record_audit('rerun', _job.job_id::text);
    return (jobq_private.store_jobs(array[
        jobq_private.copy_of(_job, jsonb_build_object('rerun_of', _job.job_id))
    ])).ids[1];
end
$$;

grant execute on function jobq.rerun to jobq_operator;

comment on function jobq.rerun is 'Enqueues a copy of a finished job, with a link to it, and returns its id.';

-- Purpose: Resumes claims of jobs of a kind.
-- Invariant: resuming a kind that is not paused changes nothing. Raises: 22004.
-- Example: select jobq.resume_kind('send_email');
create or replace function jobq.resume_kind(kind text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.check_given('kind', num_nulls(resume_kind.kind));
    select jobq_private.end_pause(resume_kind.kind, 'resume_kind')
$$;

grant execute on function jobq.resume_kind to jobq_operator;

comment on function jobq.resume_kind is 'Resumes claims of jobs of a kind.';

-- Purpose: Resumes claims from a queue.
-- Invariant: resuming a queue that is not paused changes nothing. Raises: 22004, JQ007.
-- Argument queue: the queue; * ends the pause of all queues, but not those of single queues or kinds.
-- Example: select jobq.resume_queue('mail');
create or replace function jobq.resume_queue(queue text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('queue', num_nulls(resume_queue.queue));
    if resume_queue.queue = '*' then
        perform jobq_private.end_pause('*', 'resume_queue');
        return;
    end if;
    update jobq_private.queue as q
    set paused_at = null, pause_reason = null, updated_at = now()
    where q.queue = resume_queue.queue;
    perform jobq_private.check_problem('QUEUE_NOT_FOUND', case
        when not found then 'queue ' || resume_queue.queue
    end);
    perform jobq_private.wake(array[resume_queue.queue]);
end
$$;

grant execute on function jobq.resume_queue to jobq_operator;

comment on function jobq.resume_queue is 'Resumes claims from a queue.';

-- Purpose: Returns the status of a schedule as a JSON document: health, last execution,
-- active jobs, the last 24 hours.
-- Invariant: covers one version; a new version starts at zero. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE if nothing has ended
-- in a day. Raises: 22004, JQ007.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and the name and ids of the version.
-- Example: select jobq_internal.schedule_status('weekly summary') ->> 'health';
create or replace function jobq_internal.schedule_status(schedule text)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(schedule_status.schedule);
begin
    return (
        select row_to_json(d)
        from (
            select _found.schedule_id as job_id, _found.name, _found.kind as endpoint,
                (
                    select e.type from jobq_private.endpoint as e where e.endpoint = _found.kind
                ) as endpoint_type,
                'CRON' as trigger, upper(_found.status) as status,
                case
                    when l.total = 0 then 'IDLE'
                    when l.failed * 2 >= l.total then 'FAILING'
                    when l.failed * 10 >= l.total then 'DEGRADED'
                    else 'HEALTHY'
                end as health,
                _found.version, row_to_json(x) as last_execution, row_to_json(a) as active_executions,
                json_build_object(
                    'expression', _found.cron,
                    'every_ms', jobq_private.milliseconds(_found.every),
                    'next_run_at', jobq_private.moment_in(
                        case when _found.status = 'active' then _found.next_run_at end, _found.time_zone
                    ),
                    'last_tick_at', jobq_private.moment_in(_found.last_tick_at, _found.time_zone)
                ) as cron,
                json_build_object('last_24h', row_to_json(l)) as stats
            from (
                select count(*) as total, count(*) filter (where a.state = 'succeeded') as succeeded,
                    count(*) filter (where a.state = 'dead') as failed,
                    jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)) as avg_duration_ms,
                    jobq_private.milliseconds(percentile_disc(0.99) within group (
                        order by a.finished_at - a.claimed_at
                    )) as p99_duration_ms
                from jobq_private.job_archive as a
                where a.schedule_id = _found.schedule_id
                and a.finished_at >= now() - interval '24 hours'
                and a.state in ('succeeded', 'dead')
            ) as l
            cross join (
                select count(*) filter (where j.state <> 'running') as pending,
                    count(*) filter (where j.state = 'running') as running, count(*) as total
                from jobq_private.job as j
                where j.schedule_id = _found.schedule_id
            ) as a
            left join (
                select j.job_id as execution_id,
                    jobq_private.execution_status(j.state, j.run_at) as status,
                    j.claimed_at as started_at, j.finished_at as completed_at,
                    j.attempts as attempt_number
                from jobq.job as j
                where j.schedule_id = _found.schedule_id
                and (j.state in ('running', 'retrying') or j.finished_at is not null)
                order by j.slot_at desc
                limit 1
            ) as x on true
        ) as d
    );
end
$$;

grant execute on function jobq_internal.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.schedule_status is 'Returns the status of a schedule as a JSON document: health, last execution, active jobs, the last 24 hours.';

-- Purpose: Returns a job and all connected jobs as a JSON document of nodes and edges.
-- Invariant: reads only. At most max_nodes jobs, the nearest ones; is_whole is true if
-- these are all. Edges run from the parent to the child.
-- Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument max_nodes: maximum number of jobs, 1 to 10000.
-- Returns: an object with job_id, graph_id (null outside a graph), is_whole, nodes
-- (each with job_id, name, kind, queue, state, attempts, max_attempts, created_at,
-- run_at, started_at, finished_at, error_code and error of a job that is dead,
-- cancelled or retrying, batch_id, waits_for: the number of its open edges, and
-- held_up_by: a job that it directly or indirectly waits for and that waits for none
-- itself, null if that job is not among these nodes) and edges (each with parent_id,
-- child_id, after_failure, is_open).
-- Example: select jsonb_array_length(jobq_internal.show_graph(:'waiting') -> 'nodes');
create or replace function jobq_internal.show_graph(job_id uuid, max_nodes integer default 1000)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _ids uuid[];
begin
    perform jobq.get_job(show_graph.job_id);
    perform jobq_private.check_count('max_nodes', show_graph.max_nodes, 1, 10000);
    _ids := array(
        select t.job_id
        from jobq_private.tree(show_graph.job_id, 'all', show_graph.max_nodes + 1) as t (job_id)
    );
    return jsonb_build_object(
        'job_id', show_graph.job_id,
        'graph_id', (
            select n.graph_id from jobq_private.node as n where n.job_id = show_graph.job_id
        ),
        'is_whole', cardinality(_ids) <= show_graph.max_nodes,
        'nodes', jobq_private.graph_node_documents(_ids[:show_graph.max_nodes]),
        'edges', (
            select coalesce(jsonb_agg(d order by d.parent_id, d.child_id), '[]')
            from (
                select e.parent as parent_id, e.child as child_id, e.after_failure, e.is_open
                from jobq_private.edge as e
                where e.child = any(_ids[:show_graph.max_nodes])
                and e.parent = any(_ids[:show_graph.max_nodes])
            ) as d
        )
    );
end
$$;

grant execute on function jobq_internal.show_graph
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.show_graph is 'Returns a job and all connected jobs as a JSON document of nodes and edges.';

-- Purpose: enqueue a job that is inserted into the view.
-- Invariant: runs with the caller's rights, so it requires EXECUTE on enqueue().
-- Columns that the database sets (state, attempt, lease, id and others) are refused.
-- Raises: 22004, 22023, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND.
create or replace function jobq_private.enqueue_from_view()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What is not an argument of enqueue().
    _other constant jsonb := jsonb_strip_nulls(to_jsonb(new)) - array[
        'kind', 'payload', 'queue', 'run_at', 'priority', 'max_attempts', 'timeout',
        'idempotency_key', 'dedup_key', 'metadata', 'concurrency_key', 'expires_at', 'cost'
    ];
begin
    if _other not in ('{}', '{"state": "queued"}') then
        raise exception using
            errcode = 'JQ002',
            message = 'a new job is queued, and the database sets its id',
            detail = format('given: %s', _other),
            hint = 'insert kind, payload and options only',
            constraint = 'ILLEGAL_STATE';
    end if;
    new.job_id := jobq.enqueue(
        new.kind, new.payload, new.queue, new.run_at, new.priority, new.max_attempts,
        new.timeout, new.idempotency_key, new.dedup_key, null, new.metadata,
        new.concurrency_key, new.expires_at, cost => new.cost
    );
    new := jobq.get_job(new.job_id);
    return new;
end
$$;

create or replace trigger job_insert
instead of insert on jobq.job
for each row execute function jobq_private.enqueue_from_view();

-- Purpose: perform the transition when state is updated in the view.
-- Invariant: accepts only the state with the worker, run_at, result and error of the
-- change; the tables' own triggers and foreign key check it, as for every other writer.
-- A row that another transaction has changed meanwhile counts as not found.
-- Raises: JQ002, JQ003, JQ004, JQ005, JQ006, 23503.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.update_from_view()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
        perform from jobq_private.job_archive as a
        where a.job_id = old.job_id and a.finished_at = old.finished_at
        for update;
        if found then
            perform from jobq_private.redrive_jobs(
                array[old.job_id], array[old.finished_at], target => new.state
            );
        end if;
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
