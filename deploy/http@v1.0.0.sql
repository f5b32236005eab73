-- Deploy jobq:http to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: a job's execution in the form of the HTTP API.
-- Invariant: a one-shot job and its execution are one row; the execution of a recurring
-- job has the schedule as its job.
create or replace function jobq_private.execution_document(job jobq.job)
returns json
language plpgsql
stable
as $$
begin
    return (
        select row_to_json(d)
        from (
            select job.job_id as execution_id, coalesce(job.schedule_id, job.job_id) as job_id,
                job.kind as endpoint,
                jobq_private.endpoint_type(job.kind, job.delivery_version) as endpoint_type,
                job.idempotency_key,
                jobq_private.execution_status(job.state, job.run_at) as status,
                job.payload as input, job.result as output, job.attempts as attempt_count,
                job.max_attempts, job.worker as worker_id, job.run_at, job.claimed_at as started_at,
                job.finished_at as completed_at,
                jobq_private.milliseconds(job.finished_at - job.claimed_at) as duration_ms,
                job.created_at, job.region
        ) as d
    );
end
$$;

-- Purpose: the graph of a schedule in the form of the HTTP API.
-- Invariant: durations are milliseconds; the rest is unchanged.
create or replace function jobq_private.graph_document(graph jsonb)
returns jsonb
language sql
stable
strict
as $$
    select jsonb_build_object('jobs', jsonb_agg(
        n.node - 'timeout' || jsonb_strip_nulls(jsonb_build_object(
            'timeout_ms', jobq_private.milliseconds((n.node ->> 'timeout')::interval)
        ))
        order by n.place
    ))
    from jsonb_array_elements(graph_document.graph -> 'jobs')
        with ordinality as n (node, place)
$$;

-- Purpose: a job in the form of the HTTP API.
-- Invariant: one document for both vocabularies: kind is also endpoint, and the payload
-- appears once, under the name of the requested vocabulary, else of the job: input for
-- a delivery. Payload and result keep all digits.
-- Raises: 22023.
create or replace function jobq_private.job_document(
    job jobq.job, vocabulary text default null
)
returns json
language plpgsql
stable
as $$
declare
    _type constant text := jobq_private.endpoint_type(job.kind, job.delivery_version);
    _name constant text := jobq_private.payload_name(coalesce(
        job_document.vocabulary, case when _type is null then 'kind' else 'endpoint' end
    ));
begin
    return (
        select case _name when 'input' then row_to_json(i) else row_to_json(p) end
        from (
            select job.job_id, job.kind as endpoint, _type as endpoint_type,
                jobq_private.job_trigger(job) as trigger,
                case when job.finished_at is null then 'ACTIVE' else 'RETIRED' end as status,
                1 as version, job.idempotency_key,
                json_build_object(
                    'execution_id', job.job_id,
                    'status', jobq_private.execution_status(job.state, job.run_at),
                    'created_at', job.created_at
                ) as execution,
                job.created_at, job.kind, job.queue, job.state, job.metadata, job.dedup_key,
                job.concurrency_key, job.expires_at, job.cost, job.priority, job.attempt,
                job.attempts, job.max_attempts,
                jobq_private.milliseconds(job.timeout) as timeout_ms, job.run_at, job.worker,
                job.claimed_at as started_at, job.heartbeat_at, job.lease_expires_at,
                job.finished_at, job.updated_at,
                job.cancel_requested_at is not null as cancel_requested, job.cancel_reason,
                job.progress, job.result, job.last_error_code, job.last_error, job.schedule_id,
                job.slot_at, job.region, job.batch_id
        ) as d
        cross join lateral (select d.*, job.payload as input) as i
        cross join lateral (select d.*, job.payload) as p
    );
end
$$;

-- Purpose: the limits, the hold and the jobs of one concurrency key, for show_queue().
-- Invariant: a key of an undeclared queue has no limits. Counts at most 10,001 waiting jobs.
create or replace function jobq_private.key_document(
    queue text, concurrency_key text, max_rows integer
)
returns json
language sql
stable
as $$
    select row_to_json(d)
    from (
        select
            i.concurrency_key,
            case when q.ordered then 1 else coalesce(l.max_running, q.key_max_running) end as max_running,
            r.rate_limit, jobq_private.milliseconds(r.rate_period) as rate_period_ms, r.rate_burst,
            h.held_until is not null as is_held,
            nullif(h.held_until, 'infinity') as held_until, h.reason as hold_reason,
            (
                select count(*)
                from (
                    select from jobq_private.job as j
                    where j.queue = i.queue and j.key_id = i.key_id and j.state in ('queued', 'retrying')
                    limit 10001
                ) as w
            ) as waiting,
            jobq_private.key_runners(i.queue, i.key_id, key_document.max_rows) as runners
        from (
            select key_document.queue, key_document.concurrency_key,
                jobq_private.limit_id(
                    key_document.queue, null, key_document.concurrency_key
                ) as key_id
        ) as i
        left join jobq_private.queue as q on q.queue = i.queue
        left join jobq_private.key_limit as l
            on l.queue = i.queue and l.concurrency_key = i.concurrency_key
        left join lateral (
            select h.held_until, h.reason
            from jobq_private.limit_hold as h
            where h.limit_id = i.key_id and h.held_until > clock_timestamp()
            order by h.held_until desc, h.hold_id desc
            limit 1
        ) as h on true
        cross join lateral (
            select l.rate_limit, l.rate_period, l.rate_burst where l.rate_limit is not null
            union all
            select q.key_rate_limit, q.key_rate_period, q.key_rate_burst where l.rate_limit is null
        ) as r
    ) as d
$$;

-- Purpose: the running jobs that hold keys of a queue, for show_queue(): of one key,
-- or of all.
-- Invariant: a descent of the index of slots.
create or replace function jobq_private.key_runners(
    queue text, key_id uuid, max_rows integer
)
returns json
language sql
stable
as $$
    select coalesce(json_agg(r order by r.started_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at as started_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.slot is not null
        and (key_runners.key_id is null or j.key_id = key_runners.key_id)
        and j.concurrency_key is not null
        limit key_runners.max_rows
    ) as r
$$;

-- Purpose: the median and the 95th percentile of latencies, in milliseconds, for each
-- stretch of so many seconds between two times, by its number.
create or replace function jobq_private.latency_percentiles(
    minutes integer, since timestamptz, until timestamptz, seconds double precision
)
returns table (n integer, p50 bigint, p95 bigint)
language sql
stable
as $$
    select p.n, min(p.value) filter (where p.upto >= 0.5 * p.total),
        min(p.value) filter (where p.upto >= 0.95 * p.total)
    from (
        select t.n, round(power(2::double precision, (t.class - 0.5) / 2))::bigint as value,
            sum(t.jobs) over (partition by t.n order by t.class) as upto,
            sum(t.jobs) over (partition by t.n) as total
        from (
            select
                floor(date_part('epoch', l.bucket - since) / seconds)::integer as n,
                c.class, sum(c.jobs) as jobs
            from jobq_private.latency as l
            cross join unnest(l.counts) with ordinality as c (jobs, class)
            where l.minutes = latency_percentiles.minutes
            and l.bucket >= since and l.bucket < until and c.jobs > 0
            group by 1, 2
        ) as t
    ) as p
    group by p.n
$$;

-- Purpose: the name of a payload in a vocabulary: payload in that of kinds, input in
-- that of endpoints, the default.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text
language plpgsql
stable
as $$
begin
    perform jobq_private.check_argument(case
        when vocabulary not in ('kind', 'endpoint') then 'vocabulary must be kind or endpoint'
    end);
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;

-- Purpose: a schedule in the form of the HTTP API, as a job with the trigger CRON.
-- Invariant: the next two times have the offset of its zone, if the server has the
-- zone. The payload is passed unchanged. Raises: 22023.
create or replace function jobq_private.schedule_document(
    schedule jobq_private.schedule, vocabulary text default null
)
returns json
language plpgsql
stable
as $$
begin
    return (
        select case jobq_private.payload_name(vocabulary)
            when 'input' then row_to_json(i) else row_to_json(p)
        end
        from (
            select s.schedule_id as job_id, s.kind as endpoint,
                (
                    select e.type from jobq_private.endpoint as e where e.endpoint = s.kind
                ) as endpoint_type,
                'CRON' as trigger, upper(s.status) as status, s.version, s.previous_version_id,
                s.replaced_by_id, s.name, s.cron, jobq_private.milliseconds(s.every) as every_ms,
                s.from_completion, s.time_zone as timezone, s.gap, s.fold, s.missed,
                jobq_private.milliseconds(s.catch_up) as catch_up_ms, s.dedup, s.dedup_key,
                s.concurrency_key, jobq_private.milliseconds(s.jitter) as jitter_ms,
                coalesce(s.starts_at, s.created_at) as starts_at, s.ends_at,
                jobq_private.moment_in(
                    case when s.status = 'active' then s.next_run_at end, s.time_zone
                ) as next_run_at,
                jobq_private.moment_in(s.last_tick_at, s.time_zone) as last_tick_at, s.kind,
                s.queue, s.metadata, jobq_private.graph_document(s.graph) as graph, s.priority,
                s.max_attempts, jobq_private.milliseconds(s.timeout) as timeout_ms, s.paused_at,
                s.pause_reason, s.region, s.created_at, s.retired_at
            from (select (schedule).*) as s
        ) as d
        cross join lateral (select d.*, schedule.payload as input) as i
        cross join lateral (select d.*, schedule.payload) as p
    );
end
$$;

-- Purpose: Sets on whose behalf the transaction acts; the audit log stores it with the
-- login.
-- Invariant: chosen by the login, and without any effect on rights; the audit also
-- records the login. Raises: 22004, 22023.
-- Argument name: the person or client, 1 to 256 characters.
-- Example: select jobq_http.act_for('alice@example.org');
create or replace function jobq_http.act_for(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('name', num_nulls(act_for.name));
    perform jobq_private.check_argument(case
        when length(act_for.name) not between 1 and 256 then 'name must have 1 to 256 characters'
    end);
    perform set_config('jobq.acting_for', act_for.name, true);
end
$$;

grant execute on function jobq_http.act_for
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.act_for is 'Sets on whose behalf the transaction acts; the audit log stores it with the login.';

-- Purpose: Returns name and scopes of the API key with this SHA-256, or no row.
-- Invariant: looked up by the hash of a random key, so timing reveals nothing about
-- other keys. The last use is written at most once a minute, without waiting for locks.
-- While grants by queue are enforced, a key works only at servers with the login that
-- created it.
-- Raises: nothing.
-- Returns: one row; none if the key is unknown, expired or revoked.
-- Example: select * from jobq_http.authenticate(sha256('a key'));
create or replace function jobq_http.authenticate(key_hash bytea)
returns table (name text, scopes text[], requests_per_second integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _key jobq_private.api_key;
begin
    select k.* into _key
    from jobq_private.api_key as k
    where k.key_hash = authenticate.key_hash
    and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > clock_timestamp())
    and (k.login = session_user or not row_security_active('jobq_private.api_key'));
    if not found then
        return;
    end if;

    if coalesce(_key.last_used_at, '-infinity') < clock_timestamp() - interval '1 min' then
        update jobq_private.api_key as k
        set last_used_at = clock_timestamp()
        where k.api_key = (
            select u.api_key
            from jobq_private.api_key as u
            where u.api_key = _key.api_key
            for update skip locked
        );
    end if;
    return query select _key.api_key, _key.scopes, _key.requests_per_second;
end
$$;

grant execute on function jobq_http.authenticate to jobq_reader;

comment on function jobq_http.authenticate is 'Returns name and scopes of the API key with this SHA-256, or no row.';

-- Purpose: Cancels a waiting execution and returns it, or null if it is too late.
-- Invariant: the row lock decides between this and claim; the second one sees the
-- result of the first.
-- Raises: 22004, 22023, JQ001.
-- Returns: the execution as show_execution() returns it; null if it runs or has ended.
-- Example: select jobq_http.cancel_execution(:'waiting', 'ordered twice');
create or replace function jobq_http.cancel_execution(
    execution_id uuid, reason text default null
)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform
    from jobq_private.job as j
    where j.job_id = cancel_execution.execution_id
    and j.state in ('blocked', 'queued', 'retrying')
    for update;
    if found then
        perform jobq.cancel(cancel_execution.execution_id, cancel_execution.reason);
        return jobq_http.show_execution(cancel_execution.execution_id);
    end if;
    perform jobq.get_job(cancel_execution.execution_id);
    return null;
end
$$;

grant execute on function jobq_http.cancel_execution to jobq_producer, jobq_operator;

comment on function jobq_http.cancel_execution is 'Cancels a waiting execution and returns it, or null if it is too late.';

-- Purpose: Creates an API key with scopes: produce, work, operate, read.
-- Invariant: the database sees only the SHA-256 of the key; the program that creates it
-- (256 random bits) shows it once. A name is used only once, even after it was revoked,
-- so that logs stay unambiguous.
-- Raises: 22004, 22023, JQ004.
-- Argument name: the key's name, 1 to 128 characters, never used before.
-- Argument prefix: the first characters of the key, to recognize it; 1 to 16
-- characters.
-- Argument expires_at: from when on the key is refused; null means never.
-- Argument requests_per_second: maximum requests per second with the key; null means
-- the server's default.
-- Example: select jobq_http.create_api_key('ci', sha256('a key'), 'jobq_a', '{produce,read}');
create or replace function jobq_http.create_api_key(
    name text,
    key_hash bytea,
    prefix text,
    scopes text[],
    expires_at timestamptz default null,
    requests_per_second integer default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    perform jobq_private.check_given(
        'name, key_hash, prefix and scopes', num_nulls(name, key_hash, prefix, scopes)
    );
    perform jobq_private.check_argument(case
        when create_api_key.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'expires_at must be in the years 1 to 9999'
    end);
    insert into jobq_private.api_key (
        api_key, key_hash, prefix, scopes, expires_at, requests_per_second
    )
    values (
        create_api_key.name, create_api_key.key_hash, create_api_key.prefix,
        create_api_key.scopes, create_api_key.expires_at,
        create_api_key.requests_per_second
    );
exception
    when unique_violation then
        perform jobq_private.raise_error(
            'API_KEY_EXISTS', format('name %s', create_api_key.name)
        );
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;

grant execute on function jobq_http.create_api_key to jobq_operator;

comment on function jobq_http.create_api_key is 'Creates an API key with scopes: produce, work, operate, read.';

-- Purpose: Returns the API keys: names, prefixes, scopes and last use, never the key.
-- Invariant: reads only. Raises: nothing.
-- Example: select * from jobq_http.list_api_keys();
create or replace function jobq_http.list_api_keys()
returns table (
    name text,
    prefix text,
    scopes text[],
    requests_per_second integer,
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.api_key, k.prefix, k.scopes, k.requests_per_second, k.created_at,
        k.expires_at, k.revoked_at, k.last_used_at
    from jobq_private.api_key as k
    order by k.created_at, k.api_key
$$;

grant execute on function jobq_http.list_api_keys to jobq_operator;

comment on function jobq_http.list_api_keys is 'Returns the API keys: names, prefixes, scopes and last use, never the key.';

-- Purpose: Returns a page of the attempts of a job as JSON documents, in order.
-- Invariant: each attempt once; the next page starts after the number of the last one.
-- Raises: 22004, JQ001.
-- Argument after: only attempts with a higher number; null for the first page.
-- Argument max_attempts: maximum number.
-- Members item: page_attempts
-- Example: select * from jobq_http.page_attempts(:'dead');
create or replace function jobq_http.page_attempts(
    job_id uuid, after integer default null, max_attempts integer default 50
)
returns table (item json, cursor integer)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'attempt_id', t.job_id || ':' || t.attempt, 'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'status', case t.state
                when 'succeeded' then 'SUCCESS'
                when 'running' then 'RUNNING'
                when 'cancelled' then 'CANCELLED'
                when 'queued' then 'RELEASED'
                else 'FAILED'
            end,
            'worker_id', t.worker, 'created_at', t.started_at, 'started_at', t.started_at,
            'completed_at', t.finished_at,
            'duration_ms', jobq_private.milliseconds(t.duration), 'output', t.result,
            'error', case
                when coalesce(t.error_code, t.error) is not null then
                    coalesce(t.error_details, '{}')
                    || jsonb_build_object('type', t.error_code, 'message', t.error)
            end
        ),
        case when lead(t.attempt) over (order by t.attempt) is not null then t.attempt end
    from jobq_internal.list_attempts(page_attempts.job_id) as t
    where t.attempt > coalesce(page_attempts.after, 0)
    order by t.attempt
    limit page_attempts.max_attempts;
end
$$;

grant execute on function jobq_http.page_attempts
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_attempts is 'Returns a page of the attempts of a job as JSON documents, in order.';

-- Purpose: Returns a page of the audit log as JSON documents, newest first; cursor
-- continues it.
-- Invariant: a descent of the primary key; reads at most the newest 20,000 rows.
-- Raises: 22004, 22023.
-- Argument subject: only actions on this job, queue or other subject; null means all.
-- Argument max_rows: maximum number, 1 to 1000.
-- Column item: a JSON object: audit_id, acted_at, actor, acting_for, application, action,
-- subject, reason.
-- Example: select * from jobq_http.page_audit();
create or replace function jobq_http.page_audit(
    before bigint default null, subject text default null, max_rows integer default 50
)
returns table (item json, cursor bigint)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    perform jobq_private.check_count('max_rows', page_audit.max_rows, 1, 1000);
    return query
    select
        row_to_json(t), case when lead(t.audit_id) over rest is not null then t.audit_id end
    from (
        select l.*
        from (
            select a.audit_id, a.acted_at, a.actor, a.acting_for, a.application, a.action,
                a.subject, a.reason
            from jobq_private.audit as a
            where page_audit.before is null or a.audit_id < page_audit.before
            order by a.audit_id desc
            limit 20000
        ) as l
        where page_audit.subject is null or l.subject = page_audit.subject
        order by l.audit_id desc
        limit page_audit.max_rows + 1
    ) as t
    window rest as (order by t.audit_id desc)
    order by t.audit_id desc
    limit page_audit.max_rows;
end
$$;

grant execute on function jobq_http.page_audit to jobq_operator;

comment on function jobq_http.page_audit is 'Returns a page of the audit log as JSON documents, newest first; cursor continues it.';

-- Purpose: Returns a page of the executions of a job as JSON documents, newest first.
-- Invariant: a one-shot job has one execution, a schedule one per slot, found by its
-- index. The cursor stays valid when its execution is past retention. Slots whose job
-- the overlap rule skipped have no execution. cursor is the slot of the row. Raises: 22004, JQ001.
-- Argument before: only slots before this one; null for the first page.
-- Argument max_executions: maximum number.
-- Members item: execution_document
-- Example: select * from jobq_http.page_executions(:'waiting');
create or replace function jobq_http.page_executions(
    job_id uuid, before timestamptz default null, max_executions integer default 50
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = page_executions.job_id
    ) then
        item := jobq_http.show_execution(page_executions.job_id);
        if page_executions.max_executions > 0 and page_executions.before is null then
            return next;
        end if;
        return;
    end if;
    return query
    select
        jobq_private.execution_document(p.job),
        case when lead(p.slot_at) over (order by p.slot_at desc) is not null then p.slot_at end
    from (
        select j as job, j.slot_at
        from jobq.job as j
        where j.schedule_id = page_executions.job_id
        and j.slot_at < coalesce(page_executions.before, 'infinity')
        order by j.slot_at desc
        limit page_executions.max_executions + 1
    ) as p
    order by p.slot_at desc
    limit page_executions.max_executions;
end
$$;

grant execute on function jobq_http.page_executions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_executions is 'Returns a page of the executions of a job as JSON documents, newest first.';

-- Purpose: Returns a page of jobs as JSON documents, newest first; cursor continues it.
-- Invariant: ids are ordered by time, so pages do not shift while jobs are added, and
-- each page starts with a descent of the primary keys. The times compare the time in
-- the id. A page ends early at about 4 MB. cursor is null in the very last row, else
-- `before` of the page after that row. A search that has read 100,000 jobs before the
-- page is full ends with a row whose item is null. Raises: 22004, 22023.
-- Argument trigger: only IMMEDIATE or DELAYED ones, or firings, which are CRON.
-- Argument max_jobs: maximum number, 1 to 1000.
-- Members item: job_document
-- Example: select * from jobq_http.page_jobs('{queued,running}', max_jobs => 10);
create or replace function jobq_http.page_jobs(
    states text[] default null,
    kind text default null,
    queue text default null,
    created_after timestamptz default null,
    created_before timestamptz default null,
    metadata jsonb default null,
    before uuid default null,
    max_jobs integer default 50,
    idempotency_key text default null,
    trigger text default null,
    vocabulary text default null,
    error_code text default null
)
returns table (item json, cursor uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _max_bytes constant integer := 4194304;
    _rows integer := 0;
    _bytes bigint := 0;
    _job jobq.job;
begin
    perform jobq_private.check_count('max_jobs', page_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_states(page_jobs.states);

    for _job in
        select s.*
        from jobq_private.search_jobs(
            page_jobs.states, page_jobs.kind, page_jobs.queue, page_jobs.metadata,
            page_jobs.idempotency_key, page_jobs.trigger, page_jobs.error_code,
            jobq_private.id_floor(page_jobs.created_after),
            least(page_jobs.before, jobq_private.id_floor(page_jobs.created_before)),
            page_jobs.max_jobs + 1
        ) as s
    loop
        if _rows > 0 then
            return next;
            if _rows = page_jobs.max_jobs or _bytes > _max_bytes then
                return;
            end if;
        end if;
        cursor := _job.job_id;
        item := case
            when _job.state is not null
            then jobq_private.job_document(_job, page_jobs.vocabulary)
        end;
        _bytes := _bytes + coalesce(octet_length(item::text), 0);
        _rows := _rows + 1;
    end loop;
    if _rows > 0 then
        cursor := case when item is null then cursor end;
        return next;
    end if;
end
$$;

grant execute on function jobq_http.page_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.page_jobs is 'Returns a page of jobs as JSON documents, newest first; cursor continues it.';

-- Purpose: Returns a page of the log of a job as JSON documents, in order or newest
-- first.
-- Invariant: lines are numbered as they are written, so pages do not change, and each
-- starts with a descent of the index. Raises: 22004, JQ001.
-- Argument after: only lines after this one; null for the first page.
-- Argument max_lines: maximum number.
-- Argument before: only lines before this one, the newest first; the greatest bigint for the
-- end of the log.
-- Members item: page_logs
-- Example: select * from jobq_http.page_logs(:'running');
create or replace function jobq_http.page_logs(
    job_id uuid, after bigint default null, max_lines integer default 50,
    before bigint default null
)
returns table (item json, cursor bigint)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    perform jobq.get_job(page_logs.job_id);
    return query
    select
        json_build_object(
            'log_id', t.sequence::text, 'execution_id', t.job_id, 'attempt_number', t.attempt,
            'level', t.level, 'message', t.message, 'logged_at', t.logged_at
        ),
        case when lead(t.sequence) over (order by t.n) is not null then t.sequence end
    from (
        (
            select l.*, l.sequence as n
            from jobq_private.job_log as l
            where page_logs.before is null
            and l.job_id = page_logs.job_id and l.sequence > coalesce(page_logs.after, -1)
            order by l.sequence
            limit page_logs.max_lines + 1
        )
        union all
        (
            select l.*, -l.sequence
            from jobq_private.job_log as l
            where l.job_id = page_logs.job_id and l.sequence < page_logs.before
            and l.sequence > coalesce(page_logs.after, -1)
            order by l.sequence desc
            limit page_logs.max_lines + 1
        )
    ) as t
    order by t.n
    limit page_logs.max_lines;
end
$$;

grant execute on function jobq_http.page_logs
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_logs is 'Returns a page of the log of a job as JSON documents, in order or newest first.';

-- Purpose: Returns a page of the versions of a schedule as JSON documents, newest
-- first.
-- Invariant: reads only. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Argument before: only versions before this number; null for the first page.
-- Argument max_versions: maximum number.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedule_versions('weekly summary');
create or replace function jobq_http.page_schedule_versions(
    schedule text, before integer default null, max_versions integer default 50
)
returns table (item json, cursor integer)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.schedule_document(s), case when s.version > 1 then s.version end
    from jobq_private.schedule_find(page_schedule_versions.schedule) as f
    join jobq_private.schedule as s on s.name = f.name
    where s.version < coalesce(page_schedule_versions.before, 2147483647)
    order by s.version desc
    limit page_schedule_versions.max_versions
$$;

grant execute on function jobq_http.page_schedule_versions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_schedule_versions is 'Returns a page of the versions of a schedule as JSON documents, newest first.';

-- Purpose: Returns a page of schedules as JSON documents, newest first; cursor
-- continues it.
-- Invariant: reads only; filters as in list_schedules(). Raises: 22004, 22023.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedules();
create or replace function jobq_http.page_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50,
    vocabulary text default null
)
returns table (item json, cursor uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when lead(l.schedule_id) over (order by l.schedule_id desc) is not null
            then l.schedule_id end
    from jobq_internal.list_schedules(
        page_schedules.status, page_schedules.kind, page_schedules.queue,
        page_schedules.before, page_schedules.max_schedules + 1
    ) as l
    join jobq_private.schedule as s on s.schedule_id = l.schedule_id
    order by l.schedule_id desc
    limit page_schedules.max_schedules
$$;

grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;

comment on function jobq_http.page_schedules is 'Returns a page of schedules as JSON documents, newest first; cursor continues it.';

-- Purpose: Returns the next times of a schedule, in local time, as a document.
-- Invariant: as preview_schedule(). Raises: 22004, JQ007. Never: INVALID_ARGUMENT.
-- Argument schedule_id: id of the version.
-- Returns: an object, with the array slots.
-- Example: select jobq_http.preview_slots(:'schedule');
create or replace function jobq_http.preview_slots(schedule_id uuid)
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select json_build_object('slots', coalesce(json_agg(
        jobq_private.moment_in(p.slot_at, s.time_zone) order by p.slot_at
    ), '[]'))
    from jobq_internal.preview_schedule(preview_slots.schedule_id::text) as p
    cross join jobq_private.schedule_find(preview_slots.schedule_id::text) as s
$$;

grant execute on function jobq_http.preview_slots
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.preview_slots is 'Returns the next times of a schedule, in local time, as a document.';

-- Purpose: Changes a recurring job and returns its new version as a JSON document; null
-- for a one-shot job.
-- Invariant: as update_schedule(); returns null for one-shot jobs, which never change.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the id of the recurring job's version.
-- Members changes: create_schedule, but not name
-- Returns: the new version as show_schedule() returns it; null for a job that is not
-- recurring.
-- Example: select jobq_http.revise_job(:'schedule', '{"cron": "0 10 * * MON"}');
create or replace function jobq_http.revise_job(job_id uuid, changes jsonb)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _schedule_id uuid;
begin
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = revise_job.job_id
    ) then
        perform jobq.get_job(revise_job.job_id);
        return null;
    end if;
    _schedule_id := jobq.update_schedule(revise_job.job_id::text, revise_job.changes);
    return jobq_http.show_schedule(_schedule_id::text);
end
$$;

grant execute on function jobq_http.revise_job to jobq_producer, jobq_operator;

comment on function jobq_http.revise_job is 'Changes a recurring job and returns its new version as a JSON document; null for a one-shot job.';

-- Purpose: Revokes an API key.
-- Invariant: the row stays with its name and its last use; revoking it again changes
-- nothing. Raises: 22004, JQ007.
-- Example: select jobq_http.revoke_api_key('web');
create or replace function jobq_http.revoke_api_key(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('name', num_nulls(revoke_api_key.name));
    update jobq_private.api_key as k
    set revoked_at = coalesce(k.revoked_at, now())
    where k.api_key = revoke_api_key.name;
    perform jobq_private.check_problem('API_KEY_NOT_FOUND', case
        when not found then 'name ' || revoke_api_key.name
    end);
end
$$;

grant execute on function jobq_http.revoke_api_key to jobq_operator;

comment on function jobq_http.revoke_api_key is 'Revokes an API key.';

-- Purpose: Returns dead jobs grouped by kind, queue and error code, as a JSON document.
-- Invariant: reads the newest max_looked dead jobs, by an index. Raises: 22004, 22023.
-- Argument max_looked: at most so many dead jobs, 1 to 100000.
-- Returns: a JSON object: looked_at, how many; is_all, whether these are all; groups, an array
-- of objects: kind, queue, error_code, jobs, first_at, last_at, error, errors (how many
-- different ones), workers, attempts, job_id of the newest, and metadata that all have.
-- Example: select jobq_http.show_dead_jobs() -> 'groups';
create or replace function jobq_http.show_dead_jobs(max_looked integer default 10000)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
    perform jobq_private.check_count('max_looked', show_dead_jobs.max_looked, 1, 100000);

    -- Texts are compared byte by byte. A property that all have in common, the newest
    -- has too.
    return (with looked as materialized (
        select a.job_id, a.kind collate "C" as kind, a.queue collate "C" as queue,
            coalesce(a.last_error_code, '') collate "C" as code, a.last_error,
            a.worker collate "C" as worker, a.finished_at,
            a.attempt - a.uncounted as attempts, a.metadata, row_number() over () as n
        from (
            select d.*
            from jobq_private.job_archive as d
            where d.state = 'dead'
            order by d.job_id desc
            limit show_dead_jobs.max_looked + 1
        ) as a
    ),
    grouped as materialized (
        select l.kind, l.queue, l.code, count(*) as jobs, min(l.n) as n,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            count(distinct hashtext(coalesce(l.last_error, ''))) as errors,
            (array_agg(distinct l.worker))[1:5] as workers,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts
        from looked as l
        group by l.kind, l.queue, l.code
        order by count(*) desc, max(l.finished_at) desc
        limit 200
    ),
    newest as materialized (
        select g.n, g.kind, g.queue, g.code, l.job_id, left(l.last_error, 300) as error,
            l.metadata
        from grouped as g
        join looked as l on l.n = g.n
    ),
    shared as (
        select n.n, json_object_agg(e.key, e.value order by e.key) as metadata
        from newest as n
        cross join lateral jsonb_each_text(
            case jsonb_typeof(n.metadata) when 'object' then n.metadata end
        ) as e
        where not exists (
            select from looked as l
            where l.kind = n.kind and l.queue = n.queue and l.code = n.code
            and (not l.metadata ? e.key or l.metadata ->> e.key is distinct from e.value)
        )
        group by n.n
    )
    select json_build_object(
        'looked_at', least(show_dead_jobs.max_looked, (select count(*) from looked)),
        'is_all', (select count(*) <= show_dead_jobs.max_looked from looked),
        'groups', coalesce((
            select json_agg(d)
            from (
                select g.kind, g.queue, nullif(g.code, '') as error_code, g.jobs, g.first_at,
                    g.last_at, n.error, g.errors, g.workers, g.least_attempts, g.most_attempts,
                    n.job_id, coalesce(c.metadata, '{}') as metadata
                from grouped as g
                join newest as n on n.n = g.n
                left join shared as c on c.n = g.n
                order by g.jobs desc, g.last_at desc
            ) as d
        ), '[]')
    ));
end
$$;

grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_dead_jobs is 'Returns dead jobs grouped by kind, queue and error code, as a JSON document.';

-- Purpose: Returns one execution as a JSON document.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Members return: execution_document
-- Returns: a JSON object.
-- Example: select jobq_http.show_execution(:'running');
create or replace function jobq_http.show_execution(execution_id uuid)
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.execution_document(jobq.get_job(show_execution.execution_id))
$$;

grant execute on function jobq_http.show_execution
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_execution is 'Returns one execution as a JSON document.';

-- Purpose: Returns how many jobs were created and ended in the last hour, day or month,
-- and their durations, as a JSON document.
-- Invariant: reads only the history, at most a few thousand rows. Raises: 22004, 22023.
-- Argument span: hour, by minute; day, by ten minutes; or month, by hour.
-- Argument by: queue or kind.
-- Argument max_buckets: maximum number of buckets, 1 to 720; neighbouring ones are
-- merged if there are more.
-- Returns: a JSON object: since and until, instants; width_ms, of a bucket; counts, an array of
-- arrays: the number of the bucket, the queue or kind, how many were enqueued, succeeded,
-- failed (and tried again), dead, cancelled; latency, an array of arrays: the number of the
-- bucket, the median and the 95th percentile in milliseconds of the jobs that succeeded, of
-- all queues, from when they could first run.
-- Example: select jobq_http.show_history('day', 'kind') -> 'latency';
create or replace function jobq_http.show_history(
    span text default 'hour',
    by text default 'queue',
    queue text default null,
    kind text default null,
    max_buckets integer default 720
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _minutes constant integer :=
        case show_history.span when 'hour' then 1 when 'day' then 10 when 'month' then 60 end;
    _all constant integer :=
        case show_history.span when 'hour' then 60 when 'day' then 144 else 720 end;
    -- This many of the history's own buckets are merged into one.
    _together integer;
    _seconds double precision;
    _until timestamptz;
    _since timestamptz;
begin
    perform jobq_private.check_count('max_buckets', show_history.max_buckets, 1, 720);
    perform jobq_private.check_given('span and by', num_nulls(show_history.span, show_history.by));
    perform jobq_private.check_argument(case
        when _minutes is null or show_history.by not in ('queue', 'kind')
        then 'span must be hour, day or month, by queue or kind'
    end);
    _together := ceil(_all / show_history.max_buckets::double precision);
    _seconds := 60 * _minutes * _together;
    _until := date_bin(
        _minutes * interval '1 min', clock_timestamp() - interval '10 s', '2000-01-01 UTC'
    );
    _since := _until - ceil(_all / _together::double precision) * _seconds * interval '1 s';

    return json_build_object(
        'since', _since,
        'until', _until,
        'width_ms', (1000 * _seconds)::bigint,
        'counts', (
            select coalesce(json_agg(json_build_array(
                c.n, c.name, c.enqueued, c.succeeded, c.failed, c.dead, c.cancelled
            ) order by c.n, c.name), '[]')
            from (
                select
                    floor(date_part('epoch', h.bucket - _since) / _seconds)::integer as n,
                    case show_history.by when 'queue' then h.queue else h.kind end as name,
                    sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
                    sum(h.failed) as failed, sum(h.dead) as dead,
                    sum(h.cancelled) as cancelled
                from jobq_private.history as h
                where h.minutes = _minutes
                and h.bucket >= _since and h.bucket < _until
                and (show_history.queue is null or h.queue = show_history.queue)
                and (show_history.kind is null or h.kind = show_history.kind)
                group by 1, 2
            ) as c
        ),
        'latency', (
            select coalesce(json_agg(json_build_array(q.n, q.p50, q.p95) order by q.n), '[]')
            from jobq_private.latency_percentiles(_minutes, _since, _until, _seconds) as q
        )
    );
end
$$;

grant execute on function jobq_http.show_history to jobq_operator, jobq_reader;

comment on function jobq_http.show_history is 'Returns how many jobs were created and ended in the last hour, day or month, and their durations, as a JSON document.';

-- Purpose: Returns one job, live or archived, or one recurring job, as a JSON document.
-- Invariant: reads only; ids of schedules and jobs never collide.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Members return: job_document
-- Returns: a JSON object, with payload or input beside these; for a recurring job that of
-- show_schedule().
-- Example: select jobq_http.show_job(:'waiting');
create or replace function jobq_http.show_job(job_id uuid, vocabulary text default null)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.schedule as s where s.schedule_id = show_job.job_id
    ) then
        return jobq_http.show_schedule(show_job.job_id::text, show_job.vocabulary);
    end if;
    return jobq_private.job_document(
        jobq.get_job(show_job.job_id), show_job.vocabulary
    );
end
$$;

grant execute on function jobq_http.show_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_job is 'Returns one job, live or archived, or one recurring job, as a JSON document.';

-- Purpose: Returns jobs that match a filter, newest first and without payloads, and how
-- many of the newest 10,000 match.
-- Invariant: reads at most max_looked jobs, live and archived, starting at `before`, by
-- descents of indexes. The cursor continues the search, so a filter without matches
-- costs no more than one that matches all. Raises: 22004, 22023.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument payload: only jobs whose payload contains this object.
-- Argument search: only jobs whose id begins or ends with this text (at least 4
-- characters), that have it as idempotency key, dedup key or concurrency key, or whose
-- last error contains it; null means all.
-- Argument batch_id: only members of this batch; null means all.
-- Argument job_ids: only these; null means all.
-- Argument max_jobs: at most so many in items, 1 to 1000.
-- Argument max_looked: at most so many jobs are looked at, 1 to 100000.
-- Argument with_ids: whether to return job_ids, for actions on exactly these jobs.
-- Returns: a JSON object: items; matched, how many of the jobs that were read match;
-- is_all, whether all jobs were read; cursor, the value of `before` to continue, or
-- null; job_ids, of all matches, newest first, or null.
-- Example: select jobq_http.show_jobs('{dead}', error_code => 'TIMEOUT') ->> 'matched';
create or replace function jobq_http.show_jobs(
    states text[] default null,
    kind text default null,
    queue text default null,
    created_after timestamptz default null,
    created_before timestamptz default null,
    metadata jsonb default null,
    error_code text default null,
    worker text default null,
    payload jsonb default null,
    search text default null,
    batch_id uuid default null,
    job_ids uuid[] default null,
    before uuid default null,
    max_jobs integer default 50,
    max_looked integer default 10000,
    with_ids boolean default false
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    _since constant uuid := coalesce(
        jobq_private.id_floor(show_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _until constant uuid := least(
        show_jobs.before, jobq_private.id_floor(show_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _floor uuid;
    _ids uuid[];
    _shown uuid[];
begin
    perform jobq_private.check_count('max_jobs', show_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_count('max_looked', show_jobs.max_looked, 1, 100000);
    perform jobq_private.check_states(show_jobs.states);

    if show_jobs.job_ids is null then
        _floor := jobq_private.look_floor(show_jobs.states, _since, _until, show_jobs.max_looked);
    end if;
    _ids := array(
        select m.job_id
        from jobq_private.match_jobs(
            show_jobs.states, coalesce(_floor, _since), _until, show_jobs.kind, show_jobs.queue,
            show_jobs.metadata, show_jobs.error_code, null, null, show_jobs.worker,
            show_jobs.payload, show_jobs.search, show_jobs.batch_id, show_jobs.job_ids
        ) as m
        order by m.job_id desc
    );
    _shown := _ids[:show_jobs.max_jobs];
    return json_build_object(
        'items', (
            select coalesce(json_agg(i order by i.job_id desc), '[]')
            from (
                select j.job_id, j.kind, j.queue, j.state, j.priority, j.attempts, j.max_attempts,
                    j.worker, j.created_at, j.run_at, j.claimed_at as started_at, j.finished_at,
                    j.last_error_code, left(j.last_error, 200) as last_error
                from jobq.job as j
                where j.job_id = any(_shown)
            ) as i
        ),
        'matched', cardinality(_ids),
        'is_all', _floor is null,
        'cursor', case
            when cardinality(_ids) > show_jobs.max_jobs then _shown[show_jobs.max_jobs]
            else _floor
        end,
        'job_ids', case when show_jobs.with_ids then _ids end
    );
end
$$;

grant execute on function jobq_http.show_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_jobs is 'Returns jobs that match a filter, newest first and without payloads, and how many of the newest 10,000 match.';

-- Purpose: Returns the login of the session and the scopes of its roles.
-- Invariant: reads only the roles of the session's user. Raises: nothing.
-- Returns: a JSON object: login, and scopes, an array of some of produce, work, operate and read.
-- Example: select jobq_http.show_login() ->> 'login';
create or replace function jobq_http.show_login()
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select json_build_object(
        'login', session_user,
        'scopes', coalesce(json_agg(s.scope order by s.scope) filter (
            where pg_has_role(session_user, s.role, 'usage')
        ), '[]')
    )
    from (
        values
        ('produce', 'jobq_producer'), ('work', 'jobq_worker'),
        ('operate', 'jobq_operator'), ('read', 'jobq_reader')
    ) as s (scope, role)
$$;

grant execute on function jobq_http.show_login
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_login is 'Returns the login of the session and the scopes of its roles.';

-- Purpose: Returns a number that changes when jobs, queues, schedules, workers or
-- endpoints change; reads no table.
-- Invariant: reads the server's statistics and a sequence, and no table; shows a change
-- within about a second. Raises: nothing.
-- Returns: how many rows were added, changed or deleted since the statistics began.
-- Example: select jobq_http.show_pulse();
create or replace function jobq_http.show_pulse()
returns bigint
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select sum(
        pg_stat_get_tuples_inserted(t.name::regclass)
        + pg_stat_get_tuples_updated(t.name::regclass)
        + pg_stat_get_tuples_deleted(t.name::regclass)
    )::bigint + coalesce(
        pg_sequence_last_value('jobq_private.job_log_sequence'::regclass), 0
    )
    from (
        values
        ('jobq_private.job'), ('jobq_private.queue'), ('jobq_private.key_limit'),
        ('jobq_private.schedule'), ('jobq_private.worker'), ('jobq_private.endpoint')
    ) as t (name)
$$;

grant execute on function jobq_http.show_pulse to jobq_operator, jobq_reader;

comment on function jobq_http.show_pulse is 'Returns a number that changes when jobs, queues, schedules, workers or endpoints change; reads no table.';

-- Purpose: Returns the limits of a queue, its held keys, and the jobs that hold keys,
-- as a JSON document.
-- Invariant: reads only, each part by an index and at most max_rows. An undeclared
-- queue has no limits. Raises: 22004, 22023.
-- Argument concurrency_key: a key to look at, or null.
-- Argument max_rows: at most so many holds, limits and runners, 1 to 1000.
-- Returns: a JSON object: queue, is_declared, paused_at, pause_reason, max_depth, max_running,
-- rate_limit, rate_period_ms, rate_burst, key_max_running, key_rate_limit, key_rate_period_ms,
-- key_rate_burst, ordered, on_dead; holds, an array of objects: concurrency_key and kind (one of
-- them null), until (null: until it is released), reason; limits, an array of objects:
-- concurrency_key, max_running, rate_limit, rate_period_ms, rate_burst; runners, the jobs that
-- take a key's slots: concurrency_key, job_id, kind, worker, started_at; closed, the keys that
-- wait for a time: concurrency_key, open_at; and key, null or an object: concurrency_key,
-- max_running, rate_limit, rate_period_ms, rate_burst, held_until (infinity as null), is_held,
-- hold_reason, waiting (10,001 means more), runners.
-- Example: select jobq_http.show_queue('mail', 'customer-7') -> 'key' ->> 'is_held';
create or replace function jobq_http.show_queue(
    queue text, concurrency_key text default null, max_rows integer default 100
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    perform jobq_private.check_count('max_rows', show_queue.max_rows, 1, 1000);
    perform jobq_private.check_given('queue', num_nulls(show_queue.queue));
    perform jobq_private.check_argument(case
        when length(show_queue.queue) not between 1 and 128 then 'queue must have 1 to 128 characters'
    end);
    return (
        select row_to_json(d)
        from (
            select show_queue.queue, q.queue is not null as is_declared,
                q.paused_at, q.pause_reason, q.max_depth, q.max_running, q.rate_limit,
                jobq_private.milliseconds(q.rate_period) as rate_period_ms, q.rate_burst,
                q.key_max_running, q.key_rate_limit,
                jobq_private.milliseconds(q.key_rate_period) as key_rate_period_ms,
                q.key_rate_burst, coalesce(q.ordered, false) as ordered, q.on_dead,
                (
                    select coalesce(json_agg(h), '[]')
                    from (
                        select g.concurrency_key, g.kind,
                            nullif(g.held_until, 'infinity') as until, g.reason
                        from (
                            select distinct on (o.limit_id) o.*
                            from jobq_private.limit_hold as o
                            where o.queue = show_queue.queue and o.held_until > _now
                            order by o.limit_id, o.held_until desc, o.hold_id desc
                        ) as g
                        order by g.held_until desc
                        limit show_queue.max_rows
                    ) as h
                ) as holds,
                (
                    select coalesce(json_agg(l), '[]')
                    from (
                        select k.concurrency_key, k.max_running, k.rate_limit,
                            jobq_private.milliseconds(k.rate_period) as rate_period_ms, k.rate_burst
                        from jobq_private.key_limit as k
                        where k.queue = show_queue.queue
                        and num_nonnulls(k.max_running, k.rate_limit) > 0
                        order by k.concurrency_key
                        limit show_queue.max_rows
                    ) as l
                ) as limits,
                (
                    select coalesce(json_agg(b), '[]')
                    from jobq_internal.list_budgets(max_keys => show_queue.max_rows) as b
                    where b.scope_type = 'queue' and b.scope = show_queue.queue
                    or b.scope_type = 'kind' and exists (
                        select from jobq_private.kind as k
                        where k.kind = b.scope and coalesce(k.queue, 'default') = show_queue.queue
                    )
                ) as budgets,
                jobq_private.key_runners(show_queue.queue, null, show_queue.max_rows) as runners,
                (
                    select coalesce(json_agg(c), '[]')
                    from (
                        select l.concurrency_key, l.open_at
                        from jobq_private.waiting_key as l
                        where l.queue = show_queue.queue and l.state <> 'full'
                        and l.open_at > _now and l.open_at < 'infinity'
                        order by l.open_at
                        limit show_queue.max_rows
                    ) as c
                    where c.concurrency_key is not null
                ) as closed,
                case when show_queue.concurrency_key is not null then jobq_private.key_document(
                    show_queue.queue, show_queue.concurrency_key, show_queue.max_rows
                ) end as key
            from (values (1)) as one
            left join jobq_private.queue as q on q.queue = show_queue.queue
        ) as d
    );
end
$$;

grant execute on function jobq_http.show_queue to jobq_operator, jobq_reader;

comment on function jobq_http.show_queue is 'Returns the limits of a queue, its held keys, and the jobs that hold keys, as a JSON document.';

-- Purpose: Returns a summary of the queues as a JSON document. Counts are bounded, so
-- it stays cheap.
-- Invariant: the figures of queue_stats(), bounded; goes_on names those that may be larger.
-- Queues are found by descents of indexes.
-- Raises: 22004, 22023.
-- Argument max_queues: at most so many queues, 1 to 1000.
-- Argument first: only queues from this name on; null for all.
-- Returns: a JSON array of objects: queue, queued, scheduled, running, retrying, dead,
-- blocked, oldest_runnable_ms, is_paused, paused_at, pause_reason, is_served, ends_at, goes_on, is_declared,
-- key_max_running, max_depth.
-- Example: select jobq_http.show_queues();
create or replace function jobq_http.show_queues(
    most integer default 10000, max_queues integer default 200, first text default null
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();  -- equal waits stay equal
begin
    perform jobq_private.check_count('most', show_queues.most, 1, 100000);
    perform jobq_private.check_count('max_queues', show_queues.max_queues, 1, 1000);
    return (
        select coalesce(json_agg(d order by d.queue), '[]')
        from (
            select f.queue, f.queued, f.scheduled, f.retrying, f.running, f.dead, f.blocked,
                jobq_private.milliseconds(_now - f.oldest) as oldest_runnable_ms,
                q.paused_at is not null as is_paused, q.paused_at, q.pause_reason,
                f.ends_at, f.goes_on, q.queue is not null as is_declared, q.max_depth,
                q.key_max_running, exists (
                    select from jobq_private.live_worker as u
                    where jobq_private.serves(u.queues, f.queue)
                ) as is_served
            from jobq_private.queue_figures(
                show_queues.most, show_queues.first, show_queues.max_queues
            ) as f
            left join jobq_private.queue as q on q.queue = f.queue
        ) as d
    );
end
$$;

grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;

comment on function jobq_http.show_queues is 'Returns a summary of the queues as a JSON document. Counts are bounded, so it stays cheap.';

-- Purpose: Returns a schedule, by name or by the id of a version, as a JSON document.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Members return: schedule_document
-- Returns: a JSON object, with payload or input beside these.
-- Example: select jobq_http.show_schedule('weekly summary');
create or replace function jobq_http.show_schedule(
    schedule text, vocabulary text default null
)
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.schedule_document(
        jobq_private.schedule_find(show_schedule.schedule), show_schedule.vocabulary
    )
$$;

grant execute on function jobq_http.show_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_schedule is 'Returns a schedule, by name or by the id of a version, as a JSON document.';

-- Purpose: Returns the numbers of waiting, running and dead jobs in all queues as a
-- JSON document. Counts are bounded, so it stays cheap.
-- Invariant: sums of the figures of queue_stats(), each up to `most`. For long queues it uses
-- the last count of maintain().
-- Raises: 22004, 22023.
-- Returns: a JSON object: queued, scheduled, retrying, running, blocked, dead, queues,
-- paused (how many queues are), oldest_runnable_ms, goes_on (an array with the names of
-- counts that may be larger).
-- Example: select jobq_http.show_totals() ->> 'dead';
create or replace function jobq_http.show_totals(most integer default 10000)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    perform jobq_private.check_count('most', show_totals.most, 1, 100000);
    return (
        with figure as materialized (
            select f.* from jobq_private.queue_figures(show_totals.most) as f
        ),
        counted as (
            select c.*
            from (
                select
                    coalesce(sum(f.queued), 0) as queued, coalesce(sum(f.scheduled), 0) as scheduled,
                    coalesce(sum(f.retrying), 0) as retrying, coalesce(sum(f.running), 0) as running,
                    coalesce(sum(f.blocked), 0) as blocked, coalesce(sum(f.dead), 0) as dead,
                    count(*) as queues
                from figure as f
            ) as t
            cross join lateral (
                values
                (1, 'queued', t.queued), (2, 'scheduled', t.scheduled), (3, 'retrying', t.retrying),
                (4, 'running', t.running), (5, 'blocked', t.blocked), (6, 'dead', t.dead),
                (7, 'queues', t.queues)
            ) as c (nth, name, value)
        )
        select jsonb_object_agg(c.name, least(c.value, show_totals.most)) || jsonb_build_object(
            'paused', (
                select count(*) from jobq_private.queue as q where q.paused_at is not null
            ),
            'oldest_runnable_ms', (
                select jobq_private.milliseconds(clock_timestamp() - min(f.oldest)) from figure as f
            ),
            'goes_on', coalesce(jsonb_agg(c.name order by c.nth) filter (
                where c.value > show_totals.most
                or exists (select from figure as f where c.name = any(f.goes_on))
            ), '[]')
        )
        from counted as c
    );
end
$$;

grant execute on function jobq_http.show_totals to jobq_operator, jobq_reader;

comment on function jobq_http.show_totals is 'Returns the numbers of waiting, running and dead jobs in all queues as a JSON document. Counts are bounded, so it stays cheap.';

-- Purpose: Returns workers and their jobs as a JSON document.
-- Invariant: reads the workers and at most 10,000 running jobs. Raises: nothing.
-- Returns: a JSON array of objects, live workers first: worker, queues, started_at,
-- seen_at, is_live, jobs (how many it runs), oldest (the job that it has run for the
-- longest time: job_id, kind, started_at), kinds (an object: how many of each), region,
-- except_kinds (kinds without a handler), release, stuck.
-- Example: select jobq_http.show_workers();
create or replace function jobq_http.show_workers()
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
    return (
        with leased as materialized (
            select j.worker, j.job_id, j.kind, j.claimed_at
            from jobq_private.job as j
            where j.state = 'running'
            limit 10000
        ),
        held as (
            select k.worker, sum(k.jobs) as jobs, json_object_agg(k.kind, k.jobs) as kinds
            from (
                select l.worker, l.kind, count(*) as jobs from leased as l group by 1, 2
            ) as k
            group by k.worker
        ),
        oldest as (
            select distinct on (l.worker) l.worker, l.job_id, l.kind, l.claimed_at as started_at
            from leased as l
            order by l.worker, l.claimed_at
        )
        select coalesce(json_agg(d), '[]')
        from (
            select w.worker, w.queues, w.started_at, w.seen_at, i.is_live,
                coalesce(h.jobs, 0) as jobs, coalesce(h.kinds, '{}') as kinds,
                (
                    select row_to_json(f)
                    from (select o.job_id, o.kind, o.started_at where o.worker is not null) as f
                ) as oldest,
                w.region, w.except_kinds, w.release, w.stuck
            from jobq_private.worker as w
            cross join lateral (select w.seen_at > now() - interval '1 min') as i (is_live)
            left join held as h on h.worker = w.worker
            left join oldest as o on o.worker = w.worker
            order by i.is_live desc, w.worker
            limit 500
        ) as d
    );
end
$$;

grant execute on function jobq_http.show_workers to jobq_operator, jobq_reader;

comment on function jobq_http.show_workers is 'Returns workers and their jobs as a JSON document.';

-- Purpose: Returns graphs, batches and waits for events in progress as a JSON document.
-- Invariant: reads the newest 10,000 jobs of graphs, and the newest batches and waits,
-- each by a descent of an index. Raises: 22004, 22023.
-- Argument max_rows: at most so many of each, 1 to 1000.
-- Returns: a JSON object: graphs (graph_id, job_id of one unfinished job, name of that job, jobs,
-- unfinished), batches (batch_id, queue, opened_at, sealed_at, ended_at), waits (job_id, kind, queue,
-- event, since, deadline), all newest first.
-- Example: select jobq_http.show_workflows() -> 'graphs';
create or replace function jobq_http.show_workflows(max_rows integer default 50)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
    perform jobq_private.check_count('max_rows', show_workflows.max_rows, 1, 1000);
    return json_build_object(
        'graphs', (
            select coalesce(json_agg(g order by g.graph_id desc), '[]')
            from (
                select n.graph_id, (array_agg(j.job_id order by j.job_id))[1] as job_id,
                    (array_agg(n.name order by j.job_id))[1] as name,
                    count(*) as jobs, count(j.job_id) as unfinished
                from (
                    select i.* from jobq_private.node as i order by i.job_id desc limit 10000
                ) as n
                left join jobq_private.job as j on j.job_id = n.job_id
                group by n.graph_id
                having count(j.job_id) > 0
                order by n.graph_id desc
                limit show_workflows.max_rows
            ) as g
        ),
        'batches', (
            select coalesce(json_agg(b order by b.opened_at desc), '[]')
            from (
                select a.batch_id, a.queue, a.opened_at, a.sealed_at, a.ended_at
                from jobq_private.batch as a
                order by a.opened_at desc
                limit show_workflows.max_rows
            ) as b
        ),
        'waits', (
            select coalesce(json_agg(w order by w.since desc), '[]')
            from (
                select v.job_id, j.kind, j.queue, v.event, v.since, v.deadline
                from (
                    select i.* from jobq_private.waiter as i
                    where i.question is null
                    order by i.since desc
                    limit show_workflows.max_rows
                ) as v
                join jobq_private.job as j on j.job_id = v.job_id
            ) as w
        )
    );
end
$$;

grant execute on function jobq_http.show_workflows to jobq_operator, jobq_reader;

comment on function jobq_http.show_workflows is 'Returns graphs, batches and waits for events in progress as a JSON document.';

-- Purpose: Cancels a job like cancel(), or retires a recurring one, and returns which.
-- Invariant: existing jobs of a recurring job continue.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Returns: cancelled, cancel_requested, already_finished or, of a recurring job,
-- retired.
-- Example: select jobq_http.stop_job(:'waiting');
create or replace function jobq_http.stop_job(job_id uuid, reason text default null)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _status text;
begin
    select s.status into _status
    from jobq_private.schedule as s
    where s.schedule_id = stop_job.job_id;
    if not found then
        return jobq.cancel(stop_job.job_id, stop_job.reason);
    elsif _status = 'retired' then
        return 'already_finished';
    end if;
    perform jobq.retire_schedule(stop_job.job_id::text);
    return 'retired';
end
$$;

grant execute on function jobq_http.stop_job to jobq_producer, jobq_operator;

comment on function jobq_http.stop_job is 'Cancels a job like cancel(), or retires a recurring one, and returns which.';

-- Purpose: Enqueues a job like enqueue(), and returns it as a JSON document with whether
-- it was created.
-- Invariant: as enqueue(): a repeated key returns the existing job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND.
-- Argument given: the job as a JSON object.
-- Members given: enqueue
-- Column item: the job as show_job() returns it.
-- Example: select * from jobq_http.submit_job('{"kind": "send_email", "payload": {"to": "ada@example.org"}}');
create or replace function jobq_http.submit_job(
    given jsonb, is_endpoint boolean default false, out created boolean, out item json
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _job_id uuid;
begin
    if is_endpoint then
        perform jobq_private.check_endpoints(array[given ->> 'kind']);
    end if;
    select e.job_id, e.created into _job_id, created
    from jobq.enqueue_many(jsonb_build_array(given)) as e;
    item := jobq_private.job_document(
        jobq.get_job(_job_id), case when is_endpoint then 'endpoint' else 'kind' end
    );
end
$$;

grant execute on function jobq_http.submit_job to jobq_producer;

comment on function jobq_http.submit_job is 'Enqueues a job like enqueue(), and returns it as a JSON document with whether it was created.';

-- Purpose: Enqueues many jobs like enqueue_many(); some must belong to endpoints.
-- Invariant: as enqueue_many(); all or none.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument endpoints: kinds among those of the jobs that must be endpoints.
-- Members jobs: enqueue_many
-- Returns: one row per job, with its position in the array.
-- Column job_id: the job, a new one or the one that holds the key already.
-- Example: select * from jobq_http.submit_jobs('[{"kind": "send_email"}]', '{}');
create or replace function jobq_http.submit_jobs(jobs jsonb, endpoints text[])
returns table (ordinal integer, job_id uuid, created boolean)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.check_endpoints(submit_jobs.endpoints);
    select e.ordinal, e.job_id, e.created from jobq.enqueue_many(submit_jobs.jobs) as e
$$;

grant execute on function jobq_http.submit_jobs to jobq_producer;

comment on function jobq_http.submit_jobs is 'Enqueues many jobs like enqueue_many(); some must belong to endpoints.';

-- Purpose: Creates a schedule unless its name exists, and returns it as a JSON document
-- with whether it was created.
-- Invariant: given is a JSON object with parameters of create_schedule(). A name in use
-- by a schedule of the same kind returns that schedule, whatever its definition, as an
-- idempotency key returns its job; a name in use by another kind is refused. An
-- idempotency key is a name that no other kind can take.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument given: the definition as a JSON object; without a name, one is generated.
-- Argument idempotency_key: in place of a name.
-- Members given: create_schedule
-- Column item: the schedule as show_schedule() returns it.
-- Example: select * from jobq_http.submit_schedule('{"kind": "summary", "cron": "0 9 * * MON"}');
create or replace function jobq_http.submit_schedule(
    given jsonb, idempotency_key text default null, is_endpoint boolean default false,
    out created boolean, out item json
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _given jobq_private.schedule := jobq_private.read_schedule(null, 'given', given);
    _schedule_id uuid;
begin
    _given.name := coalesce(
        _given.name,
        'key-' || encode(
            sha256(convert_to(_given.kind || ':' || idempotency_key, 'UTF8')), 'hex'
        ),
        'unnamed-' || jobq_private.new_id(0)
    );
    if is_endpoint then
        perform jobq_private.check_endpoints(array[_given.kind]);
    end if;

    select d.schedule_id, d.created into _schedule_id, created
    from jobq_private.schedule_declare(_given, true) as d;
    item := jobq_http.show_schedule(_schedule_id::text);
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when item ->> 'kind' <> _given.kind
        then format('schedule %s, of kind %s', _given.name, item ->> 'kind')
    end);
end
$$;

grant execute on function jobq_http.submit_schedule to jobq_producer, jobq_operator;

comment on function jobq_http.submit_schedule is 'Creates a schedule unless its name exists, and returns it as a JSON document with whether it was created.';

-- Purpose: record changes of API keys in the audit.

create or replace trigger api_key_birth_audit
after insert on jobq_private.api_key
for each row execute function jobq_private.audit_change('create_api_key', 'api_key');

create or replace trigger api_key_audit
after update on jobq_private.api_key
for each row when (new.last_used_at is not distinct from old.last_used_at)
execute function jobq_private.audit_change('revoke_api_key', 'api_key');

commit;
