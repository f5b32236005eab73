-- Deploy jobq:http to pg
-- Made by sql/snapshot.py from sql/http/: edit that.
begin;
set local role jobq_owner;

-- Purpose: when the execution that a running job is in began, null while it is in its
-- first attempt: since then its config stays the same.
-- Invariant: attempts that do not count, and those before a redrive, are no part of it.
-- Raises: nothing.
create or replace function jobq_private.execution_started_at(job_id uuid)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _earlier integer;
begin
    select j.attempt - j.uncounted - 1 into _earlier
    from jobq_private.job as j
    where j.job_id = execution_started_at.job_id;

    if coalesce(_earlier, 0) < 1 then
        return null;
    end if;
    return (
        select t.started_at
        from jobq_private.attempt as t
        where t.job_id = execution_started_at.job_id and t.state = 'retrying'
        order by t.attempt desc
        offset _earlier - 1
        limit 1
    );
end
$$;

revoke all on function jobq_private.execution_started_at from public;

comment on function jobq_private.execution_started_at is
'When the execution that a running job is in began, or null in its first attempt.';

-- Purpose: a job's execution as the HTTP API shows it.
-- Invariant: a one-shot job and its execution are one row; the execution of a recurring
-- job names the schedule as its job. Raises: nothing.
create or replace function jobq_private.execution_document(job jobq.job)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return json_build_object(
        'execution_id', job.job_id,
        'job_id', coalesce(job.schedule_id, job.job_id),
        'endpoint', job.kind,
        'endpoint_type', jobq_private.endpoint_type(job.kind, job.delivery_version),
        'idempotency_key', job.idempotency_key,
        'status', jobq_private.execution_status(job.state, job.run_at),
        'input', job.payload,
        'output', job.result,
        'attempt_count', job.attempts,
        'max_attempts', job.max_attempts,
        'worker_id', job.worker,
        'run_at', job.run_at,
        'started_at', job.claimed_at,
        'completed_at', job.finished_at,
        'duration_ms', jobq_private.milliseconds(job.finished_at - job.claimed_at),
        'created_at', job.created_at
    );
end
$$;

revoke all on function jobq_private.execution_document from public;

comment on function jobq_private.execution_document is
'A job''s execution as the HTTP API shows it.';

-- Purpose: the name that the HTTP API has for where a job is.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.execution_status(state text, run_at timestamptz)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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

revoke all on function jobq_private.execution_status from public;

comment on function jobq_private.execution_status is
'The HTTP API''s name for a state: PENDING, QUEUED, RUNNING, RETRYING, SUCCESS, FAILED or CANCELLED.';

-- Purpose: whether a job ended as dead or cancelled.
-- Invariant: only the partitions from the day before the id's own time on are looked at.
-- Raises: nothing.
create or replace function jobq_private.has_failed(job_id uuid)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from jobq_private.job_archive as a
        where a.job_id = has_failed.job_id
        and a.finished_at >= jobq_private.id_time(has_failed.job_id) - interval '1 day'
        and a.state in ('dead', 'cancelled')
    );
end
$$;

revoke all on function jobq_private.has_failed from public;

comment on function jobq_private.has_failed is
'Says whether a job ended as dead or cancelled.';

-- Purpose: a job as the HTTP API shows it.
-- Invariant: one document for the clients of every dialect: kind is endpoint too, and the
-- payload stands there once, under the name of the vocabulary that is asked for, else of
-- the job: input where it is a delivery. Payload and result pass to the last digit.
-- Raises: 22023.
create or replace function jobq_private.job_document(
    job jobq.job, vocabulary text default null
)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _endpoint_type text;
begin
    _endpoint_type := jobq_private.endpoint_type(job.kind, job.delivery_version);
    return json_build_object(
        'job_id', job.job_id,
        'endpoint', job.kind,
        'endpoint_type', _endpoint_type,
        'trigger', jobq_private.job_trigger(job),
        'status', case when job.finished_at is null then 'ACTIVE' else 'RETIRED' end,
        'version', 1,
        'idempotency_key', job.idempotency_key,
        jobq_private.payload_name(coalesce(
            job_document.vocabulary,
            case when _endpoint_type is null then 'kind' else 'endpoint' end
        )), job.payload,
        'execution', json_build_object(
            'execution_id', job.job_id,
            'status', jobq_private.execution_status(job.state, job.run_at),
            'created_at', job.created_at
        ),
        'created_at', job.created_at,
        'kind', job.kind,
        'queue', job.queue,
        'state', job.state,
        'metadata', job.metadata,
        'dedup_key', job.dedup_key,
        'concurrency_key', job.concurrency_key,
        'expires_at', job.expires_at,
        'priority', job.priority,
        'attempt', job.attempt,
        'attempts', job.attempts,
        'max_attempts', job.max_attempts,
        'timeout_ms', jobq_private.milliseconds(job.timeout),
        'run_at', job.run_at,
        'worker', job.worker,
        'started_at', job.claimed_at,
        'heartbeat_at', job.heartbeat_at,
        'lease_expires_at', job.lease_expires_at,
        'finished_at', job.finished_at,
        'updated_at', job.updated_at,
        'cancel_requested', job.cancel_requested_at is not null,
        'cancel_reason', job.cancel_reason,
        'progress', job.progress,
        'result', job.result,
        'last_error_code', job.last_error_code,
        'last_error', job.last_error,
        'schedule_id', job.schedule_id,
        'slot_at', job.slot_at,
        'region', job.region,
        'batch_id', job.batch_id
    );
end
$$;

revoke all on function jobq_private.job_document from public;

comment on function jobq_private.job_document is
'A job as the HTTP API shows it.';

-- Purpose: what made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.
-- Invariant: reads nothing but when a job was due that waits for its endpoint to be resumed; a
-- job that was asked for as DELAYED says so in its metadata, since run_at changes when it
-- retries. Raises: nothing.
create or replace function jobq_private.job_trigger(job jobq.job)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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
        when _due > job.created_at and job.last_error is null then 'DELAYED'
        else 'IMMEDIATE'
    end;
end
$$;

revoke all on function jobq_private.job_trigger from public;

comment on function jobq_private.job_trigger is
'What made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.';

-- Purpose: the jobs that take places of keys in a queue, for show_queue(): of one lane, or of all.
-- Invariant: a descent of the index of places. Raises: nothing.
create or replace function jobq_private.key_runners(
    queue text, lane_id uuid, max_rows integer
)
returns json
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(json_agg(json_build_object(
        'concurrency_key', r.concurrency_key, 'job_id', r.job_id, 'kind', r.kind,
        'worker', r.worker, 'started_at', r.claimed_at
    ) order by r.claimed_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.place is not null
        and (key_runners.lane_id is null or j.lane_id = key_runners.lane_id)
        and j.concurrency_key is not null
        limit key_runners.max_rows
    ) as r
$$;

revoke all on function jobq_private.key_runners from public;

comment on function jobq_private.key_runners is
'The jobs that take places of keys in a queue.';

-- Purpose: which dead or cancelled jobs fit a filter, newest first.
-- Invariant: reads the index alone that holds what the filter asks for, where pages are known
-- to be visible to all. Raises: nothing.
-- Argument states: dead, cancelled, or both.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument error_code: only with this code; null means all.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of those that fit, newest first; is_cut, whether there are more to look
-- at; last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_failed(
    states text[], kind text, queue text, error_code text,
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_failed.most),
        count(*) > look_failed.most,
        (array_agg(l.job_id) filter (where l.n = look_failed.most))[1]
    into look_failed.job_ids, look_failed.is_cut, look_failed.last_id
    from (
        select u.job_id, row_number() over () as n,
            (look_failed.kind is null or u.kind = look_failed.kind)
            and (look_failed.queue is null or u.queue = look_failed.queue)
            and (
                look_failed.error_code is null
                or u.last_error_code is not distinct from look_failed.error_code
            ) as fits
        from (
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'dead' = any (look_failed.states) and a.state = 'dead'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            union all
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'cancelled' = any (look_failed.states) and a.state = 'cancelled'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            order by job_id desc
            limit look_failed.most + 1
        ) as u
    ) as l;
end
$$;

revoke all on function jobq_private.look_failed from public;

comment on function jobq_private.look_failed is
'Returns which dead or cancelled jobs fit a filter.';

-- Purpose: which jobs fit a filter, newest first.
-- Invariant: reads rows by descents of indexes, live ones and archived. Raises: nothing.
-- Argument states: only these.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument metadata: only those whose metadata contain this object; null means all.
-- Argument error_code: only with this code; null means all.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of those that fit, newest first; is_cut, whether there are more to look
-- at; last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_jobs(
    states text[], kind text, queue text, metadata jsonb, error_code text, worker text,
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _is_any_end constant boolean := 'succeeded' = any (look_jobs.states);
    _is_live constant boolean := not look_jobs.states <@ '{succeeded,dead,cancelled}'::text[];
    _is_leased constant boolean := look_jobs.states = '{running}';
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_jobs.most),
        count(*) > look_jobs.most,
        (array_agg(l.job_id) filter (where l.n = look_jobs.most))[1]
    into look_jobs.job_ids, look_jobs.is_cut, look_jobs.last_id
    from (
        select u.job_id, row_number() over () as n,
            u.state = any (look_jobs.states)
            and (look_jobs.kind is null or u.kind = look_jobs.kind)
            and (look_jobs.queue is null or u.queue = look_jobs.queue)
            and (look_jobs.metadata is null or u.metadata @> look_jobs.metadata)
            and (
                look_jobs.error_code is null
                or u.last_error_code is not distinct from look_jobs.error_code
            )
            and (
                look_jobs.worker is null or u.worker is not distinct from look_jobs.worker
            ) as fits
        from (
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata,
                    j.last_error_code, j.worker
                from jobq_private.job as j
                where _is_live and not _is_leased
                and j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata,
                    j.last_error_code, j.worker
                from (
                    select r.*
                    from jobq_private.job as r
                    where _is_leased and r.state = 'running'
                    offset 0
                ) as j
                where j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where _is_any_end
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where not _is_any_end and 'dead' = any (look_jobs.states) and a.state = 'dead'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where not _is_any_end and 'cancelled' = any (look_jobs.states)
                and a.state = 'cancelled'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            order by job_id desc
            limit look_jobs.most + 1
        ) as u
    ) as l;
end
$$;

revoke all on function jobq_private.look_jobs from public;

comment on function jobq_private.look_jobs is
'Returns which jobs fit a filter.';

-- Purpose: which jobs are the newest, of any kind and state.
-- Invariant: reads indexes alone, where pages are known to be visible to all. Raises: nothing.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of all that were looked at, newest first; is_cut, whether there are more;
-- last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_newest(
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select array_agg(l.job_id) into look_newest.job_ids
    from (
        (
            select j.job_id from jobq_private.job as j
            where j.job_id < look_newest.until and j.job_id >= look_newest.since
            order by j.job_id desc
            limit look_newest.most + 1
        )
        union all
        (
            select a.job_id from jobq_private.job_archive as a
            where a.job_id < look_newest.until and a.job_id >= look_newest.since
            order by a.job_id desc
            limit look_newest.most + 1
        )
        order by job_id desc
        limit look_newest.most + 1
    ) as l;
    look_newest.is_cut := coalesce(cardinality(look_newest.job_ids) > look_newest.most, false);
    if look_newest.is_cut then
        look_newest.last_id := look_newest.job_ids[look_newest.most];
        look_newest.job_ids := look_newest.job_ids[:look_newest.most];
    end if;
end
$$;

revoke all on function jobq_private.look_newest from public;

comment on function jobq_private.look_newest is
'Returns which jobs are the newest.';

-- Purpose: what a payload is called in a vocabulary: payload in that of kinds, input in that
-- of endpoints, which null means.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if vocabulary not in ('kind', 'endpoint') then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'vocabulary must be kind or endpoint');
    end if;
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;

revoke all on function jobq_private.payload_name from public;

comment on function jobq_private.payload_name is
'What a payload is called in a vocabulary: payload or input.';

-- Purpose: who holds the key with this SHA-256, and what it may do; no row when nobody
-- does, or when it has expired or been revoked.
-- Invariant: looked up by the hash of a random key, so the time taken tells nothing of
-- another key. The last use is written at most once a minute, and never waited for.
-- While grants by queue are enforced, a key opens the servers of the log-in that made it.
-- Raises: nothing.
-- Returns: one row; none when nobody holds the key, or when it has expired or been
-- revoked.
-- Column name: the key's name.
-- Example: select * from jobq_http.authenticate(sha256('a key'));
create or replace function jobq_http.authenticate(key_hash bytea)
returns table (name text, scopes text[], requests_per_second integer)
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq_http.authenticate from public;
grant execute on function jobq_http.authenticate to jobq_reader;

comment on function jobq_http.authenticate is
'Returns the name and the scopes of the HTTP API key with this SHA-256, or no row.';

-- Purpose: cancel an execution that still waits, and leave it alone when it does not.
-- Invariant: the row lock decides between this and claim; whoever comes second sees what
-- the first has done.
-- Raises: 22004, 22023, JQ001.
-- Argument execution_id: the id of the execution, which is that of its job.
-- Returns: the execution as show_execution() returns it; null when it runs or has
-- ended.
-- Example: select jobq_http.cancel_execution(:'waiting', 'ordered twice');
create or replace function jobq_http.cancel_execution(
    execution_id uuid, reason text default null
)
returns json
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq_http.cancel_execution from public;
grant execute on function jobq_http.cancel_execution to jobq_producer, jobq_operator;

comment on function jobq_http.cancel_execution is
'Cancels an execution that still waits and returns it, or null when it is too late.';

-- Purpose: let the holder of a key use the HTTP API, within scopes.
-- Invariant: the database sees the SHA-256 of the key alone; whoever makes it (256 random
-- bits) shows it once. A name is used once, revoked or not, so that logs stay clear.
-- Raises: 22004, 22023, JQ004.
-- Argument name: the key's name, 1 to 128 characters, never used before.
-- Argument prefix: the first letters of the key, to know it by; 1 to 16 characters.
-- Argument requests_per_second: how many requests its holder may make in a second; null
-- means the server's default.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if num_nulls(
        create_api_key.name, create_api_key.key_hash, create_api_key.prefix,
        create_api_key.scopes
    ) > 0 then
        perform jobq_private.raise_error(
            'NULL_ARGUMENT', 'name, key_hash, prefix and scopes'
        );
    end if;
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
        perform jobq_private.refuse_setting('jobq_private.api_key', _violated);
end
$$;

revoke all on function jobq_http.create_api_key from public;
grant execute on function jobq_http.create_api_key to jobq_operator;

comment on function jobq_http.create_api_key is
'Lets the holder of a key use the HTTP API within scopes: produce, work, operate, read.';

-- Purpose: the keys of the HTTP API, without anything that would let one be used.
-- Invariant: reads only. Raises: nothing.
-- Column name: the key's name.
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
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.api_key, k.prefix, k.scopes, k.requests_per_second, k.created_at,
        k.expires_at, k.revoked_at, k.last_used_at
    from jobq_private.api_key as k
    order by k.created_at, k.api_key
$$;

revoke all on function jobq_http.list_api_keys from public;
grant execute on function jobq_http.list_api_keys to jobq_operator;

comment on function jobq_http.list_api_keys is
'Returns the keys of the HTTP API: names, prefixes, scopes and last use, never a key.';

-- Purpose: a page of the attempts of a job, in their order; cursor as in page_jobs().
-- Invariant: each attempt once; its number is what the next page starts after.
-- Raises: 22004, JQ001.
-- Argument after: only attempts with a higher number; null for the first page.
-- Argument max_attempts: at most so many.
-- Members item: page_attempts
-- Example: select * from jobq_http.page_attempts(:'dead');
create or replace function jobq_http.page_attempts(
    job_id uuid, after integer default null, max_attempts integer default 50
)
returns table (item json, cursor integer)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'attempt_id', format('%s:%s', t.job_id, t.attempt),
            'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'status', case t.state
                when 'succeeded' then 'SUCCESS'
                when 'running' then 'RUNNING'
                when 'cancelled' then 'CANCELLED'
                when 'queued' then 'RELEASED'
                else 'FAILED'
            end,
            'worker_id', t.worker,
            'created_at', t.started_at,
            'started_at', t.started_at,
            'completed_at', t.finished_at,
            'duration_ms', jobq_private.milliseconds(t.duration),
            'output', t.result,
            'error', case
                when coalesce(t.error_code, t.error) is not null then
                    coalesce(t.error_details, '{}')
                    || jsonb_build_object('type', t.error_code, 'message', t.error)
            end
        ),
        case when t.n < t.total then t.attempt end
    from (
        select
            a.*, row_number() over (order by a.attempt) as n, count(*) over () as total
        from jobq.list_attempts(page_attempts.job_id) as a
        where a.attempt > coalesce(page_attempts.after, 0)
    ) as t
    where t.n <= page_attempts.max_attempts
    order by t.n;
end
$$;

revoke all on function jobq_http.page_attempts from public;
grant execute on function jobq_http.page_attempts
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_attempts is
'Returns a page of the attempts of a job as JSON documents, in their order.';

-- Purpose: a page of what operators have done, newest first; cursor as in page_jobs().
-- Invariant: a descent of the primary key; of the newest 20,000 rows those that fit.
-- Raises: 22004, 22023.
-- Argument before: only what came before this row; null for the first page.
-- Argument subject: only what was done to this job, queue or other subject; null means all.
-- Argument max_rows: at most so many, 1 to 1000.
-- Column item: a JSON object: audit_id, acted_at, actor, acting_for, application, action,
-- subject, reason.
-- Example: select * from jobq_http.page_audit();
create or replace function jobq_http.page_audit(
    before bigint default null, subject text default null, max_rows integer default 50
)
returns table (item json, cursor bigint)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    if page_audit.max_rows is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_rows');
    elsif page_audit.max_rows not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_rows must be from 1 to 1000'
        );
    end if;
    return query
    select
        json_build_object(
            'audit_id', t.audit_id, 'acted_at', t.acted_at, 'actor', t.actor,
            'acting_for', t.acting_for, 'application', t.application,
            'action', t.action, 'subject', t.subject, 'reason', t.reason
        ),
        case when t.n < count(*) over () then t.audit_id end
    from (
        select l.*, row_number() over (order by l.audit_id desc) as n
        from (
            select a.*
            from jobq_private.audit as a
            where page_audit.before is null or a.audit_id < page_audit.before
            order by a.audit_id desc
            limit 20000
        ) as l
        where page_audit.subject is null or l.subject = page_audit.subject
        order by l.audit_id desc
        limit page_audit.max_rows + 1
    ) as t
    order by t.n
    limit page_audit.max_rows;
end
$$;

revoke all on function jobq_http.page_audit from public;
grant execute on function jobq_http.page_audit to jobq_operator;

comment on function jobq_http.page_audit is
'Returns a page of what operators have done as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: a page of the executions of a job, the newest first; cursor is null in the last
-- row of all, else it is what `before` takes for the page that follows that row: its slot.
-- Invariant: a one-shot job has one. A schedule has one for each slot, and pages follow
-- its index. Raises: 22004, JQ001.
-- Argument before: only slots before this one; null for the first page.
-- Argument max_executions: at most so many.
-- Members item: execution_document
-- Example: select * from jobq_http.page_executions(:'waiting');
create or replace function jobq_http.page_executions(
    job_id uuid, before timestamptz default null, max_executions integer default 50
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.schedule as s
        where s.schedule_id = page_executions.job_id
    ) then
        return query
        select f.item, f.cursor
        from jobq_private.schedule_executions(
            page_executions.job_id, page_executions.before,
            page_executions.max_executions
        ) as f;
        return;
    end if;
    item := jobq_http.show_execution(page_executions.job_id);
    if page_executions.max_executions > 0 and page_executions.before is null then
        return next;
    end if;
end
$$;

revoke all on function jobq_http.page_executions from public;
grant execute on function jobq_http.page_executions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_executions is
'Returns a page of the executions of a job as JSON documents, the newest first.';

-- Purpose: a page of jobs as documents, newest first; cursor is null in the last row of
-- all, else it is what `before` takes for the page that follows that row. A search that has
-- looked at 100,000 jobs ends with a row whose item is null, if the page is not full.
-- Invariant: ids are ordered by time, so pages stay the same while jobs are added, and
-- each starts with a descent of the primary keys, wherever it lies. The times compare the
-- moment in the id. A page ends early at about 4 MB. Raises: 22004, 22023.
-- Argument states: only these; null means all.
-- Argument created_after: only those made after this instant.
-- Argument created_before: only those made before this instant.
-- Argument metadata: only those whose metadata contain this object.
-- Argument idempotency_key: only those with this key; null means all.
-- Argument trigger: only IMMEDIATE or DELAYED ones, or firings, which are CRON.
-- Argument is_finished: only those that have ended, or have not; null means all.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument vocabulary: as show_job() has it.
-- Argument before: only jobs made before this one; null for the first page.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument max_jobs: at most so many, 1 to 1000.
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
    is_finished boolean default null,
    vocabulary text default null,
    error_code text default null
)
returns table (item json, cursor uuid)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _max_bytes constant integer := 4194304;
    _from constant uuid := coalesce(
        jobq_private.id_floor(page_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _to constant uuid := least(
        page_jobs.before, jobq_private.id_floor(page_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _states constant text[] := case
        when page_jobs.is_finished is null then page_jobs.states
        else array(
            select s.state
            from unnest(case
                when page_jobs.is_finished then '{succeeded,dead,cancelled}'::text[]
                else '{blocked,queued,running,retrying}'
            end) as s (state)
            where page_jobs.states is null or s.state = any(page_jobs.states)
        )
    end;
    _rows integer := 0;
    _bytes bigint := 0;
    _job jobq.job;
begin
    if page_jobs.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif page_jobs.max_jobs not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 1000'
        );
    elsif not page_jobs.states <@ array[
        'blocked', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled'
    ] then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'states are blocked, queued, running, retrying, succeeded, dead and cancelled');
    end if;

    for _job in
        select s.*
        from jobq_private.search_jobs(
            _states, page_jobs.kind, page_jobs.queue, page_jobs.metadata,
            page_jobs.idempotency_key, page_jobs.trigger, page_jobs.error_code, _from, _to,
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

revoke all on function jobq_http.page_jobs from public;
grant execute on function jobq_http.page_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.page_jobs is
'Returns a page of jobs as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: a page of the log of a job, in its order or the newest first; cursor as in
-- page_jobs(), for `after` or for `before`.
-- Invariant: lines are numbered as they are written, so a page that was read stays as it
-- was, and each starts with a descent of the index. Raises: 22004, JQ001.
-- Argument after: only lines after this one; null for the first page.
-- Argument max_lines: at most so many.
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
parallel safe
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
            'log_id', t.sequence::text,
            'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'level', t.level,
            'message', t.message,
            'logged_at', t.logged_at
        ),
        case when t.n < count(*) over () then t.sequence end
    from (
        (
            select l.*, row_number() over (order by l.sequence) as n
            from jobq_private.job_log as l
            where page_logs.before is null
            and l.job_id = page_logs.job_id and l.sequence > coalesce(page_logs.after, -1)
            order by l.sequence
            limit page_logs.max_lines + 1
        )
        union all
        (
            select l.*, row_number() over (order by l.sequence desc)
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

revoke all on function jobq_http.page_logs from public;
grant execute on function jobq_http.page_logs
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_logs is
'Returns a page of the log of a job as JSON documents, in its order or the newest first.';

-- Purpose: a page of queues with their statistics, by name; cursor as in page_jobs().
-- Invariant: the figures of queue_stats(). Raises: nothing.
-- Argument after: only queues whose names come after this one.
-- Argument max_queues: at most so many.
-- Members item: page_queues
-- Example: select * from jobq_http.page_queues();
create or replace function jobq_http.page_queues(
    after text default null, max_queues integer default 50
)
returns table (item json, cursor text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'queue', t.queue,
            'queued', t.queued,
            'scheduled', t.scheduled,
            'running', t.running,
            'retrying', t.retrying,
            'dead', t.dead,
            'oldest_runnable_ms', jobq_private.milliseconds(t.oldest_runnable),
            'finished_last_minute', t.finished_last_minute,
            'is_paused', t.is_paused,
            'lanes', t.lanes,
            'closed_lanes', t.closed_lanes,
            'is_exact', t.is_exact,
            'blocked', t.blocked
        ),
        case when t.n < t.total then t.queue end
    from (
        select
            s.*, row_number() over (order by s.queue) as n, count(*) over () as total
        from jobq.queue_stats() as s
        where page_queues.after is null or s.queue > page_queues.after
    ) as t
    where t.n <= page_queues.max_queues
    order by t.n;
end
$$;

revoke all on function jobq_http.page_queues from public;
grant execute on function jobq_http.page_queues to jobq_operator, jobq_reader;

comment on function jobq_http.page_queues is
'Returns a page of queues with their statistics as JSON documents.';

-- Purpose: a page of the versions of a schedule as documents, newest first; cursor is
-- null in the last row of all, else what `before` takes for the page that follows that
-- row.
-- Invariant: reads only. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Argument before: only versions before this number; null for the first page.
-- Argument max_versions: at most so many.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedule_versions('weekly summary');
create or replace function jobq_http.page_schedule_versions(
    schedule text, before integer default null, max_versions integer default 50
)
returns table (item json, cursor integer)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        page_schedule_versions.schedule
    );
begin
    return query
    select jobq_private.schedule_document(s), case when s.version > 1 then s.version end
    from jobq_private.schedule as s
    where s.name = _found.name
    and s.version < coalesce(page_schedule_versions.before, 2147483647)
    order by s.version desc
    limit page_schedule_versions.max_versions;
end
$$;

revoke all on function jobq_http.page_schedule_versions from public;
grant execute on function jobq_http.page_schedule_versions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_schedule_versions is
'Returns a page of the versions of a schedule as JSON documents, newest first.';

-- Purpose: a page of schedules as documents, newest first; cursor as in page_jobs().
-- Invariant: reads only; filters as list_schedules(). Raises: 22004, 22023.
-- Argument status: only these; null means those in force, active and paused.
-- Argument before: only versions made before this one; null for the first page.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument max_schedules: at most so many, 1 to 1000.
-- Argument vocabulary: as show_job() has it.
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
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when p.n < count(*) over () then p.schedule_id end
    from (
        select l.schedule_id, row_number() over (order by l.schedule_id desc) as n
        from jobq.list_schedules(
            page_schedules.status, page_schedules.kind, page_schedules.queue,
            page_schedules.before, page_schedules.max_schedules + 1
        ) as l
    ) as p
    join jobq_private.schedule as s on s.schedule_id = p.schedule_id
    order by p.n
    limit page_schedules.max_schedules;
end
$$;

revoke all on function jobq_http.page_schedules from public;
grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;

comment on function jobq_http.page_schedules is
'Returns a page of schedules as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: when a schedule fires next, by the clocks of its zone, as a document.
-- Invariant: as preview_schedule(). Raises: 22004, JQ007. Never: INVALID_ARGUMENT.
-- Argument schedule_id: its version.
-- Returns: an object, with the array slots.
-- Example: select jobq_http.preview_slots(:'schedule');
create or replace function jobq_http.preview_slots(schedule_id uuid)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select json_build_object('slots', coalesce(json_agg(
            jobq_private.moment_in(p.slot_at, s.time_zone) order by p.slot_at
        ), '[]'))
        from jobq.preview_schedule(preview_slots.schedule_id::text) as p
        cross join jobq_private.schedule_find(preview_slots.schedule_id::text) as s
    );
end
$$;

revoke all on function jobq_http.preview_slots from public;
grant execute on function jobq_http.preview_slots
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.preview_slots is
'Returns when a schedule fires next, by the clocks of its zone, as a document.';

-- Purpose: change a recurring job: a new version takes over, which is returned.
-- Invariant: as update_schedule(); one-shot jobs never change, and yield null.
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
volatile
parallel unsafe
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

revoke all on function jobq_http.revise_job from public;
grant execute on function jobq_http.revise_job to jobq_producer, jobq_operator;

comment on function jobq_http.revise_job is
'Changes a recurring job and returns its new version as a JSON document; null for a one-shot job.';

-- Purpose: take a key of the HTTP API out of use.
-- Invariant: the row stays, so that its name and its last use can still be read; revoking
-- it again changes nothing. Raises: 22004, JQ007.
-- Argument name: the key's name.
-- Example: select jobq_http.revoke_api_key('web');
create or replace function jobq_http.revoke_api_key(name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if revoke_api_key.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    end if;
    update jobq_private.api_key as k
    set revoked_at = coalesce(k.revoked_at, now())
    where k.api_key = revoke_api_key.name;
    if not found then
        perform jobq_private.raise_error(
            'API_KEY_NOT_FOUND', format('name %s', revoke_api_key.name)
        );
    end if;
end
$$;

revoke all on function jobq_http.revoke_api_key from public;
grant execute on function jobq_http.revoke_api_key to jobq_operator;

comment on function jobq_http.revoke_api_key is
'Takes a key of the HTTP API out of use.';

-- Purpose: dead jobs by kind, queue and error code, with what each group has in common.
-- Invariant: looks at the newest max_looked dead jobs, by an index. Raises: 22004, 22023.
-- Argument max_looked: at most so many dead jobs, 1 to 100000.
-- Returns: a JSON object: looked_at, how many; is_all, whether these are all; groups, an array
-- of objects: kind, queue, error_code, jobs, first_at, last_at, error, errors (how many
-- different ones), workers, attempts, job_id of the newest, and metadata that all have.
-- Example: select jobq_http.show_dead_jobs() -> 'groups';
create or replace function jobq_http.show_dead_jobs(max_looked integer default 10000)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _document json;
begin
    if show_dead_jobs.max_looked is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_looked');
    elsif show_dead_jobs.max_looked not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_looked must be from 1 to 100000'
        );
    end if;

    -- Texts are compared byte by byte. What all have in common the newest has, too.
    with looked as materialized (
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
    told as (
        select l.kind, l.queue, l.code, hashtext(l.last_error) as error,
            count(*) as jobs, min(l.n) as n,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts
        from looked as l
        group by l.kind, l.queue, l.code, hashtext(l.last_error)
    ),
    hands as (
        select w.kind, w.queue, w.code, (array_agg(w.worker order by w.worker))[1:5] as workers
        from (select distinct l.kind, l.queue, l.code, l.worker from looked as l) as w
        group by w.kind, w.queue, w.code
    ),
    grouped as materialized (
        select t.kind, t.queue, t.code, sum(t.jobs)::bigint as jobs, min(t.n) as n,
            min(t.first_at) as first_at, max(t.last_at) as last_at, count(*) as errors,
            min(t.least_attempts) as least_attempts, max(t.most_attempts) as most_attempts
        from told as t
        group by t.kind, t.queue, t.code
        order by sum(t.jobs) desc, max(t.last_at) desc
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
            select json_agg(json_build_object(
                'kind', g.kind, 'queue', g.queue, 'error_code', nullif(g.code, ''),
                'jobs', g.jobs, 'first_at', g.first_at, 'last_at', g.last_at,
                'error', n.error, 'errors', g.errors, 'workers', h.workers,
                'least_attempts', g.least_attempts, 'most_attempts', g.most_attempts,
                'job_id', n.job_id, 'metadata', coalesce(c.metadata, '{}')
            ) order by g.jobs desc, g.last_at desc)
            from grouped as g
            join newest as n on n.n = g.n
            join hands as h on h.kind = g.kind and h.queue = g.queue and h.code = g.code
            left join shared as c on c.n = g.n
        ), '[]')
    ) into _document;
    return _document;
end
$$;

revoke all on function jobq_http.show_dead_jobs from public;
grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_dead_jobs is
'Returns dead jobs by kind, queue and error code, with what each group has in common, as a JSON document.';

-- Purpose: one execution as the HTTP API shows it.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Argument execution_id: the id of the execution, which is that of its job.
-- Members return: execution_document
-- Returns: a JSON object.
-- Example: select jobq_http.show_execution(:'running');
create or replace function jobq_http.show_execution(execution_id uuid)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.execution_document(jobq.get_job(show_execution.execution_id));
end
$$;

revoke all on function jobq_http.show_execution from public;
grant execute on function jobq_http.show_execution
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_execution is
'Returns one execution as a JSON document.';

-- Purpose: how many jobs were made and ended, and how long they took, over the last hour,
-- day or month, from the history that maintain() keeps.
-- Invariant: reads the history alone, a few thousand rows at most. Raises: 22004, 22023.
-- Argument span: hour, by minute; day, by ten minutes; or month, by hour.
-- Argument by: queue or kind.
-- Argument queue: only this queue; null means all.
-- Argument kind: only this kind; null means all.
-- Argument max_buckets: at most so many buckets, 1 to 720; where there are more, as many
-- neighbours as need be are told as one.
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
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _minutes constant integer :=
        case show_history.span when 'hour' then 1 when 'day' then 10 when 'month' then 60 end;
    _all constant integer :=
        case show_history.span when 'hour' then 60 when 'day' then 144 else 720 end;
    -- So many of the history's own buckets are told as one.
    _together integer;
    _seconds double precision;
    _until timestamptz;
    _since timestamptz;
begin
    if num_nulls(show_history.span, show_history.by, show_history.max_buckets) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'span, by and max_buckets');
    elsif _minutes is null or show_history.by not in ('queue', 'kind') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'span must be hour, day or month, by queue or kind'
        );
    elsif show_history.max_buckets not between 1 and 720 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_buckets must be from 1 to 720'
        );
    end if;
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
            from (
                select p.n, min(p.value) filter (where p.upto >= 0.5 * p.total) as p50,
                    min(p.value) filter (where p.upto >= 0.95 * p.total) as p95
                from (
                    select t.n, round(power(2::double precision, (t.class - 0.5) / 2))::bigint as value,
                        sum(t.jobs) over (partition by t.n order by t.class) as upto,
                        sum(t.jobs) over (partition by t.n) as total
                    from (
                        select
                            floor(date_part('epoch', l.bucket - _since) / _seconds)::integer as n,
                            c.class, sum(c.jobs) as jobs
                        from jobq_private.latency as l
                        cross join unnest(l.counts) with ordinality as c (jobs, class)
                        where l.minutes = _minutes
                        and l.bucket >= _since and l.bucket < _until and c.jobs > 0
                        group by 1, 2
                    ) as t
                ) as p
                group by p.n
            ) as q
        )
    );
end
$$;

revoke all on function jobq_http.show_history from public;
grant execute on function jobq_http.show_history to jobq_operator, jobq_reader;

comment on function jobq_http.show_history is
'Returns how many jobs were made and ended over the last hour, day or month, and how long they took, as a JSON document.';

-- Purpose: one job, live or archived, or one recurring job, as the HTTP API shows it.
-- Invariant: reads only; ids of schedules and of jobs never meet.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Argument vocabulary: kind, so that what the job is given is its payload, or endpoint, so
-- that it is its input; null means endpoint for deliveries and recurring jobs.
-- Members return: job_document
-- Returns: a JSON object, with payload or input beside these; for a recurring job that of
-- show_schedule().
-- Example: select jobq_http.show_job(:'waiting');
create or replace function jobq_http.show_job(job_id uuid, vocabulary text default null)
returns json
language plpgsql
stable
parallel unsafe
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

revoke all on function jobq_http.show_job from public;
grant execute on function jobq_http.show_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_job is
'Returns one job, live or archived, or one recurring job, as a JSON document.';

-- Purpose: jobs that fit a filter, newest first, without payloads, and how many there are.
-- Invariant: looks at max_looked jobs at most, live ones and archived, from `before` on,
-- each by a descent of an index; what lies behind is told by the cursor, so a filter that
-- nothing fits costs no more than one that all jobs fit. Raises: 22004, 22023.
-- Argument states: only these; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument created_after: only those made at this instant or later.
-- Argument created_before: only those made before this instant.
-- Argument metadata: only those whose metadata contain this object.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument before: only jobs made before this one; null for the first page.
-- Argument max_jobs: at most so many in items, 1 to 1000.
-- Argument max_looked: at most so many jobs are looked at, 1 to 100000.
-- Argument with_ids: whether job_ids is told, for who acts on just these jobs.
-- Returns: a JSON object: items; matched, how many of those looked at fit; is_all, whether
-- nothing was left to look at; cursor, what `before` takes to go on, or null; job_ids, of all
-- that matched, newest first, or null.
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
    before uuid default null,
    max_jobs integer default 50,
    max_looked integer default 10000,
    with_ids boolean default false
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _ended constant text[] := '{dead,cancelled}'::text[];
    _all constant text[] := array(
        select distinct t.to_state from jobq_private.transition as t order by 1
    );
    _states constant text[] := coalesce(show_jobs.states, _all);
    _since constant uuid := coalesce(
        jobq_private.id_floor(show_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _until constant uuid := least(
        show_jobs.before, jobq_private.id_floor(show_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _found record;
    _shown uuid[];
    _items json;
begin
    if num_nulls(show_jobs.max_jobs, show_jobs.max_looked) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs and max_looked');
    elsif show_jobs.max_jobs not between 1 and 1000
        or show_jobs.max_looked not between 1 and 100000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'max_jobs must be from 1 to 1000, max_looked from 1 to 100000');
    elsif not _states <@ _all or array_position(_states, null) is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'states are ' || array_to_string(_all, ', '));
    end if;

    if _states @> _all and num_nonnulls(
        show_jobs.kind, show_jobs.queue, show_jobs.metadata, show_jobs.error_code, show_jobs.worker
    ) = 0 then
        _found := jobq_private.look_newest(_since, _until, show_jobs.max_looked);
    elsif _states <@ _ended and num_nonnulls(show_jobs.metadata, show_jobs.worker) = 0 then
        _found := jobq_private.look_failed(
            _states, show_jobs.kind, show_jobs.queue, show_jobs.error_code,
            _since, _until, show_jobs.max_looked
        );
    else
        _found := jobq_private.look_jobs(
            _states, show_jobs.kind, show_jobs.queue, show_jobs.metadata,
            show_jobs.error_code, show_jobs.worker, _since, _until, show_jobs.max_looked
        );
    end if;
    _shown := _found.job_ids[:show_jobs.max_jobs];
    select json_agg(json_build_object(
        'job_id', f.job_id, 'kind', f.kind, 'queue', f.queue, 'state', f.state,
        'priority', f.priority, 'attempts', f.attempt - f.uncounted,
        'max_attempts', f.max_attempts, 'worker', f.worker,
        'created_at', f.created_at, 'run_at', f.run_at,
        'started_at', f.claimed_at, 'finished_at', f.finished_at,
        'last_error_code', f.last_error_code,
        'last_error', left(f.last_error, 200)
    ) order by f.job_id desc) into _items
    from (
        select j.job_id, j.kind, j.queue, j.state, j.priority, j.attempt, j.uncounted,
            j.max_attempts, j.worker, j.created_at, j.run_at, j.claimed_at,
            null::timestamptz as finished_at, j.last_error_code, j.last_error
        from jobq_private.job as j
        where j.job_id = any (_shown)
        union all
        select a.job_id, a.kind, a.queue, a.state, a.priority, a.attempt, a.uncounted,
            a.max_attempts, a.worker, a.created_at, a.run_at, a.claimed_at,
            a.finished_at, a.last_error_code, a.last_error
        from jobq_private.job_archive as a
        where a.job_id = any (_shown)
    ) as f;
    return json_build_object(
        'items', coalesce(_items, '[]'),
        'matched', coalesce(cardinality(_found.job_ids), 0),
        'is_all', not _found.is_cut,
        'cursor', case
            when cardinality(_found.job_ids) > show_jobs.max_jobs
            then _shown[show_jobs.max_jobs]
            else _found.last_id
        end,
        'job_ids', case when show_jobs.with_ids then coalesce(_found.job_ids, '{}'::uuid[]) end
    );
end
$$;

revoke all on function jobq_http.show_jobs from public;
grant execute on function jobq_http.show_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_jobs is
'Returns jobs that fit a filter, newest first and without payloads, and how many fit among the newest 10,000.';

-- Purpose: who has logged in to the database, and what the HTTP API would call its scopes.
-- Invariant: reads the roles of the session's user alone. Raises: nothing.
-- Returns: a JSON object: login, and scopes, an array of some of produce, work, operate and read.
-- Example: select jobq_http.show_login() ->> 'login';
create or replace function jobq_http.show_login()
returns json
language sql
stable
parallel safe
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

revoke all on function jobq_http.show_login from public;
grant execute on function jobq_http.show_login
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_login is
'Returns who has logged in to the database, with the scopes that follow from its roles.';

-- Purpose: a number that has changed when anything may have changed that is shown of jobs,
-- queues, limits, schedules, workers or endpoints, or a line was logged.
-- Invariant: reads the server's statistics and a sequence, and no table; a change shows in
-- about a second. Raises: nothing.
-- Returns: how many rows were added, changed or deleted since the statistics began.
-- Example: select jobq_http.show_pulse();
create or replace function jobq_http.show_pulse()
returns bigint
language sql
stable
parallel safe
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

revoke all on function jobq_http.show_pulse from public;
grant execute on function jobq_http.show_pulse to jobq_operator, jobq_reader;

comment on function jobq_http.show_pulse is
'Returns a number that changes when jobs, queues, schedules, workers or endpoints do, at the cost of no table.';

-- Purpose: a queue in detail: what it allows, which keys are held, and who holds keys now; with a
-- key also what holds for that key.
-- Invariant: reads only, each part by an index and no more than max_rows of it. A queue that
-- nobody has declared allows all. Raises: 22004, 22023.
-- Argument concurrency_key: a key to look at, or null.
-- Argument max_rows: at most so many holds, limits and runners, 1 to 1000.
-- Returns: a JSON object: queue, is_declared, paused_at, pause_reason, max_depth, max_running,
-- rate_limit, rate_period_ms, rate_burst, key_max_running, key_rate_limit, key_rate_period_ms,
-- key_rate_burst, ordered, on_dead; holds, an array of objects: concurrency_key and kind (one of
-- them null), until (null: until it is released), reason; limits, an array of objects:
-- concurrency_key, max_running, rate_limit, rate_period_ms, rate_burst; runners, the jobs that
-- take a key's places: concurrency_key, job_id, kind, worker, started_at; closed, the keys that
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
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _lane_id constant uuid := jobq_private.lane_id(
        show_queue.queue, show_queue.concurrency_key
    );
begin
    if num_nulls(show_queue.queue, show_queue.max_rows) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and max_rows');
    elsif length(show_queue.queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a queue has 1 to 128 characters'
        );
    elsif show_queue.max_rows not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_rows must be from 1 to 1000'
        );
    end if;
    return (
        select json_build_object(
            'queue', show_queue.queue, 'is_declared', q.queue is not null,
            'paused_at', q.paused_at, 'pause_reason', q.pause_reason,
            'max_depth', q.max_depth, 'max_running', q.max_running,
            'rate_limit', q.rate_limit,
            'rate_period_ms', jobq_private.milliseconds(q.rate_period),
            'rate_burst', q.rate_burst, 'key_max_running', q.key_max_running,
            'key_rate_limit', q.key_rate_limit,
            'key_rate_period_ms', jobq_private.milliseconds(q.key_rate_period),
            'key_rate_burst', q.key_rate_burst,
            'ordered', coalesce(q.ordered, false), 'on_dead', q.on_dead,
            'holds', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', h.concurrency_key, 'kind', h.kind,
                    'until', nullif(h.held_until, 'infinity'), 'reason', h.hold_reason
                ) order by h.held_until desc), '[]')
                from (
                    select g.*
                    from jobq_private.gate as g
                    where g.queue = show_queue.queue
                    and g.held_until > _now and g.held_until > '-infinity'
                    order by g.held_until desc
                    limit show_queue.max_rows
                ) as h
            ),
            'limits', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', l.concurrency_key, 'max_running', l.max_running,
                    'rate_limit', l.rate_limit,
                    'rate_period_ms', jobq_private.milliseconds(l.rate_period),
                    'rate_burst', l.rate_burst
                ) order by l.concurrency_key), '[]')
                from (
                    select k.*
                    from jobq_private.key_limit as k
                    where k.queue = show_queue.queue
                    order by k.concurrency_key
                    limit show_queue.max_rows
                ) as l
            ),
            'runners', jobq_private.key_runners(show_queue.queue, null, show_queue.max_rows),
            'closed', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', c.concurrency_key, 'open_at', c.open_at
                ) order by c.open_at), '[]')
                from (
                    select l.concurrency_key, l.open_at
                    from jobq_private.lane as l
                    where l.queue = show_queue.queue and l.state <> 'full'
                    and l.open_at > _now and l.open_at < 'infinity'
                    order by l.open_at
                    limit show_queue.max_rows
                ) as c
                where c.concurrency_key is not null
            ),
            'key', case when show_queue.concurrency_key is not null then (
                select json_build_object(
                    'concurrency_key', show_queue.concurrency_key,
                    'max_running', case when q.ordered then 1
                        else coalesce(l.max_running, q.key_max_running) end,
                    'rate_limit', coalesce(l.rate_limit, q.key_rate_limit),
                    'rate_period_ms', jobq_private.milliseconds(
                        case when l.rate_limit is null then q.key_rate_period
                        else l.rate_period end
                    ),
                    'rate_burst', case when l.rate_limit is null then q.key_rate_burst
                        else l.rate_burst end,
                    'is_held', coalesce(g.held_until > _now, false),
                    'held_until', case when g.held_until > _now
                        then nullif(g.held_until, 'infinity') end,
                    'hold_reason', case when g.held_until > _now then g.hold_reason end,
                    'waiting', (
                        select count(*)
                        from (
                            select from jobq_private.job as j
                            where j.queue = show_queue.queue and j.lane_id = _lane_id
                            and j.state in ('queued', 'retrying')
                            limit 10001
                        ) as w
                    ),
                    'runners', jobq_private.key_runners(
                        show_queue.queue, _lane_id, show_queue.max_rows
                    )
                )
                from (values (1)) as one
                left join jobq_private.gate as g on g.gate_id = _lane_id
                left join jobq_private.key_limit as l
                on l.queue = show_queue.queue
                and l.concurrency_key = show_queue.concurrency_key
            ) end
        )
        from (values (1)) as one
        left join jobq_private.queue as q on q.queue = show_queue.queue
    );
end
$$;

revoke all on function jobq_http.show_queue from public;
grant execute on function jobq_http.show_queue to jobq_operator, jobq_reader;

comment on function jobq_http.show_queue is
'Returns what a queue allows, which of its keys are held, and which jobs hold keys, as a JSON document.';

-- Purpose: queues at a glance, by name: what queue_stats() tells, at a cost that has an end.
-- Invariant: looks at some 10,000 waiting jobs, as many of each queue, and what is left of
-- them of long ones: where queued, scheduled and retrying together are more than ends_at, there
-- may be more of each. Queues are found by descents of indexes. running, blocked and dead are of
-- most of all queues, the dead being the newest; goes_on names those of which there may be more.
-- Raises: 22004, 22023.
-- Argument most: where counts end at the latest, 1 to 100000.
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
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _document json;
begin
    if num_nulls(show_queues.most, show_queues.max_queues) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'most and max_queues');
    elsif show_queues.most not between 1 and 100000
        or show_queues.max_queues not between 1 and 1000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'most must be from 1 to 100000, max_queues from 1 to 1000');
    end if;

    with leased as (
        select s.queue, count(*) as running
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'running' limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    held as (
        select s.queue, count(*) as blocked
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'blocked' limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    ended as (
        select s.queue, count(*) as dead
        from (
            select a.queue from jobq_private.job_archive as a
            where a.state = 'dead'
            order by a.job_id desc
            limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    known as (
        select n.queue
        from (
            select t.queue from jobq_private.waiting_queue as t
            union select l.queue from leased as l
            union select h.queue from held as h
            union select e.queue from ended as e
            union select q.queue from jobq_private.queue as q
            union select unnest(w.queues) from jobq_private.worker as w
        ) as n
        where n.queue is not null
        and (show_queues.first is null or n.queue >= show_queues.first)
        order by n.queue
        limit show_queues.max_queues
    ),
    looked as (
        select w.*
        from jobq_private.look_waiting(
            array(select k.queue from known as k order by k.queue), show_queues.most
        ) as w
    ),
    more as (
        select
            coalesce((select sum(l.running) from leased as l), 0) > show_queues.most as running,
            coalesce((select sum(h.blocked) from held as h), 0) > show_queues.most as blocked,
            coalesce((select sum(e.dead) from ended as e), 0) > show_queues.most as dead
    )
    select json_agg(json_build_object(
        'queue', k.queue,
        'queued', w.queued,
        'scheduled', w.scheduled,
        'retrying', w.retrying,
        'running', coalesce(l.running, 0),
        'dead', coalesce(e.dead, 0),
        'blocked', coalesce(h.blocked, 0),
        'oldest_runnable_ms', jobq_private.milliseconds(
            _now - least(o.run_at, w.oldest)
        ),
        'is_paused', q.paused_at is not null,
        'paused_at', q.paused_at,
        'pause_reason', q.pause_reason,
        'ends_at', w.ends_at,
        'goes_on', array_remove(array[
            case when c.is_cut then 'queued' end,
            case when c.is_cut then 'scheduled' end,
            case when c.is_cut then 'retrying' end,
            case when m.running and l.running > 0 then 'running' end,
            case when m.blocked and h.blocked > 0 then 'blocked' end,
            case when m.dead and e.dead > 0 then 'dead' end
        ], null),
        'is_declared', q.queue is not null,
        'max_depth', q.max_depth,
        'key_max_running', q.key_max_running,
        'is_served', exists (
            select from jobq_private.worker as u
            where k.queue = any (u.queues) and u.seen_at > _now - interval '1 min'
        )
    ) order by k.queue) into _document
    from looked as w
    cross join lateral (select w.queue) as k (queue)
    left join jobq_private.queue as q on q.queue = k.queue
    left join leased as l on l.queue = k.queue
    left join held as h on h.queue = k.queue
    left join ended as e on e.queue = k.queue
    cross join lateral (select w.queued + w.scheduled + w.retrying > w.ends_at) as c (is_cut)
    left join lateral (
        select d.due as run_at
        from jobq.next_due(array[k.queue]) as d (due)
        -- Of the others the oldest was seen; an open lane says no time.
        where c.is_cut and d.due <= _now and d.due > '0001-01-02 UTC'
    ) as o on true
    cross join more as m;
    return coalesce(_document, '[]');
end
$$;

revoke all on function jobq_http.show_queues from public;
grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;

comment on function jobq_http.show_queues is
'Returns queues at a glance as a JSON document; its counts end, so that it stays cheap however many jobs there are.';

-- Purpose: a schedule as the HTTP API shows it.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Argument vocabulary: as show_job() has it.
-- Members return: schedule_document
-- Returns: a JSON object, with payload or input beside these.
-- Example: select jobq_http.show_schedule('weekly summary');
create or replace function jobq_http.show_schedule(
    schedule text, vocabulary text default null
)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.schedule_document(
        jobq_private.schedule_find(show_schedule.schedule), show_schedule.vocabulary
    );
end
$$;

revoke all on function jobq_http.show_schedule from public;
grant execute on function jobq_http.show_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_schedule is
'Returns a schedule, by name or by the id of a version, as a JSON document.';

-- Purpose: how many jobs of all queues wait, run and are dead, at a cost that has an end.
-- Invariant: counts are exact to `most`. Of what waits it looks at some 10,000 jobs, of 2,000
-- queues at the most; of queues with more it takes what maintain() has counted last.
-- Raises: 22004, 22023.
-- Argument most: where counts end at the latest, 1 to 100000.
-- Returns: a JSON object: queued, scheduled, retrying, running, blocked, dead, queues, paused (how
-- many queues are), oldest_runnable_ms, goes_on (an array: the names of those counts of which
-- there may be more).
-- Example: select jobq_http.show_totals() ->> 'dead';
create or replace function jobq_http.show_totals(most integer default 10000)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _most_queues constant integer := 2000;
    _all text[];
    _document json;
begin
    if show_totals.most is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'most');
    elsif show_totals.most not between 1 and 100000 then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'most must be from 1 to 100000');
    end if;
    _all := array(select w.queue from jobq_private.waiting_queue as w order by w.queue);

    with looked as (
        select
            w.queue, w.queued + w.scheduled + w.retrying > w.ends_at as is_cut, w.oldest,
            greatest(w.queued, c.queued) as queued,
            greatest(w.scheduled, c.scheduled) as scheduled,
            greatest(w.retrying, c.retrying) as retrying
        from jobq_private.look_waiting(_all[:_most_queues], show_totals.most) as w
        left join jobq_private.waiting_count as c
            on c.queue = w.queue and w.queued + w.scheduled + w.retrying > w.ends_at
    ),
    waiting as (
        select
            coalesce(sum(l.queued), 0) as queued, coalesce(sum(l.scheduled), 0) as scheduled,
            coalesce(sum(l.retrying), 0) as retrying, min(l.oldest) as oldest,
            coalesce(bool_or(l.is_cut), false) or cardinality(_all) > _most_queues as is_cut,
            array_agg(l.queue) filter (where l.is_cut) as queues
        from looked as l
    ),
    leased as (
        select s.queue, count(*) as jobs
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'running' limit show_totals.most + 1
        ) as s
        group by s.queue
    ),
    held as (
        select s.queue, count(*) as jobs
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'blocked' limit show_totals.most + 1
        ) as s
        group by s.queue
    ),
    ended as (
        select s.queue, count(*) as jobs
        from (
            select a.queue from jobq_private.job_archive as a
            where a.state = 'dead' limit show_totals.most + 1
        ) as s
        group by s.queue
    ),
    known as (
        select unnest(_all) as queue
        union select l.queue from leased as l
        union select h.queue from held as h
        union select e.queue from ended as e
        union select q.queue from jobq_private.queue as q
        union select unnest(w.queues) from jobq_private.worker as w
    ),
    counted (nth, name, value, is_cut) as (
        select 1, 'queued', w.queued, w.is_cut from waiting as w
        union all select 2, 'scheduled', w.scheduled, w.is_cut from waiting as w
        union all select 3, 'retrying', w.retrying, w.is_cut from waiting as w
        union all select 4, 'running', coalesce(sum(l.jobs), 0), false from leased as l
        union all select 5, 'blocked', coalesce(sum(h.jobs), 0), false from held as h
        union all select 6, 'dead', coalesce(sum(e.jobs), 0), false from ended as e
        union all select 7, 'queues', count(*), false from known
    )
    select jsonb_object_agg(c.name, least(c.value, show_totals.most)) || jsonb_build_object(
        'paused', (
            select count(*) from jobq_private.queue as q where q.paused_at is not null
        ),
        'oldest_runnable_ms', (
            select jobq_private.milliseconds(_now - least(w.oldest, (
                select d.due from jobq.next_due(w.queues) as d (due)
                where w.queues is not null and d.due <= _now and d.due > '0001-01-02 UTC'
            )))
            from waiting as w
        ),
        'goes_on', coalesce(jsonb_agg(c.name order by c.nth)
            filter (where c.is_cut or c.value > show_totals.most), '[]')
    ) into _document
    from counted as c;
    return _document;
end
$$;

revoke all on function jobq_http.show_totals from public;
grant execute on function jobq_http.show_totals to jobq_operator, jobq_reader;

comment on function jobq_http.show_totals is
'Returns how many jobs of all queues wait, run and are dead as a JSON document; its counts end, so that it stays cheap however many jobs there are.';

-- Purpose: who works, and on what.
-- Invariant: reads the workers and what is leased, 10,000 jobs at most. Raises: nothing.
-- Returns: a JSON array of objects, live workers first: worker, queues, started_at, seen_at,
-- is_live, jobs (how many it runs), oldest (the one that it has run the longest: job_id, kind,
-- started_at), kinds (an object: how many of each), region, except_kinds (those that it does not
-- know), release, stuck.
-- Example: select jobq_http.show_workers();
create or replace function jobq_http.show_workers()
returns json
language plpgsql
stable
parallel safe
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
        first as (
            select distinct on (l.worker) l.*
            from leased as l
            order by l.worker, l.claimed_at
        ),
        known as (
            select w.worker, w.queues, w.started_at, w.seen_at,
                w.seen_at > now() - interval '1 min' as is_live, w.region, w.except_kinds,
                w.release, w.stuck
            from jobq_private.worker as w
            order by 5 desc, w.worker
            limit 500
        )
        select coalesce(json_agg(json_build_object(
            'worker', w.worker, 'queues', w.queues, 'started_at', w.started_at,
            'seen_at', w.seen_at, 'is_live', w.is_live, 'jobs', coalesce(h.jobs, 0),
            'kinds', coalesce(h.kinds, '{}'), 'oldest', case when f.worker is not null
                then json_build_object(
                    'job_id', f.job_id, 'kind', f.kind, 'started_at', f.claimed_at
                ) end, 'region', w.region,
            'except_kinds', w.except_kinds, 'release', w.release,
            'stuck', w.stuck
        ) order by w.is_live desc, w.worker), '[]')
        from known as w
        left join held as h on h.worker = w.worker
        left join first as f on f.worker = w.worker
    );
end
$$;

revoke all on function jobq_http.show_workers from public;
grant execute on function jobq_http.show_workers to jobq_operator, jobq_reader;

comment on function jobq_http.show_workers is
'Returns who works, and on what, as a JSON document.';

-- Purpose: stop a job as cancel() does, or retire a recurring one.
-- Invariant: what a recurring job has fired already goes on.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Returns: cancelled, cancel_requested, already_finished or, of a recurring job,
-- retired.
-- Example: select jobq_http.stop_job(:'waiting');
create or replace function jobq_http.stop_job(job_id uuid, reason text default null)
returns text
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq_http.stop_job from public;
grant execute on function jobq_http.stop_job to jobq_producer, jobq_operator;

comment on function jobq_http.stop_job is
'Stops a job as cancel() does, or retires a recurring one, and says which.';

-- Purpose: enqueue one job and show it, with whether it was created.
-- Invariant: as enqueue(): a key that is taken yields the job that holds it.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument expires_at: no attempt begins after this instant: the job is then dead, with the
-- code EXPIRED; after run_at, null for never.
-- Argument is_endpoint: whether kind must be an endpoint.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND.
-- Column item: the job as show_job() returns it.
-- Example: select * from jobq_http.submit_job('send_email', '{"to": "ada@example.org"}');
create or replace function jobq_http.submit_job(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    is_endpoint boolean default false,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null,
    out created boolean,
    out item json
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _job constant jobq_private.new_job := row(
        1, submit_job.kind, submit_job.payload, submit_job.queue, submit_job.run_at,
        submit_job.priority, submit_job.max_attempts, submit_job.timeout,
        submit_job.idempotency_key, submit_job.dedup_key, submit_job.dedup,
        submit_job.metadata, null, null, submit_job.concurrency_key,
        submit_job.expires_at,
        submit_job.after, submit_job.after_failure, submit_job.batch_id, null, null
    );
    _job_id uuid;
begin
    if is_endpoint then
        perform jobq_private.check_endpoints(array[submit_job.kind]);
    end if;
    select s.created, s.job_id into created, _job_id
    from jobq_private.store_job(_job) as s;
    item := jobq_private.job_document(
        jobq.get_job(_job_id), case when is_endpoint then 'endpoint' else 'kind' end
    );
end
$$;

revoke all on function jobq_http.submit_job from public;
grant execute on function jobq_http.submit_job to jobq_producer;

comment on function jobq_http.submit_job is
'Adds a job as enqueue() does, and returns it as a JSON document with whether it was created.';

-- Purpose: enqueue many jobs, some of them deliveries.
-- Invariant: as enqueue_many(); all or none.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument endpoints: kinds among those of the jobs that must be endpoints.
-- Members jobs: enqueue_many
-- Returns: a row for each job, with its place in the array.
-- Column ordinal: the place in the array, from 1.
-- Column job_id: the job, a new one or the one that holds the key already.
-- Column created: whether this call made it.
-- Example: select * from jobq_http.submit_jobs('[{"kind": "send_email"}]', '{}');
create or replace function jobq_http.submit_jobs(jobs jsonb, endpoints text[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_endpoints(submit_jobs.endpoints);
    return query select * from jobq.enqueue_many(submit_jobs.jobs);
end
$$;

revoke all on function jobq_http.submit_jobs from public;
grant execute on function jobq_http.submit_jobs to jobq_producer;

comment on function jobq_http.submit_jobs is
'Adds many jobs as enqueue_many() does, some of which must be of endpoints.';

-- Purpose: make a schedule unless its name is in use, and show it, with whether it was
-- made.
-- Invariant: given is a JSON object with parameters of create_schedule(); a name that
-- is in use, by whatever definition of the same kind, yields the schedule that has it, as
-- an idempotency key yields its job; of another kind it is refused. An idempotency key is
-- a name that no other kind can take.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument given: the definition as a JSON object; without a name it gets one of its
-- own.
-- Argument idempotency_key: in place of a name.
-- Argument is_endpoint: whether the kind must be an endpoint.
-- Members given: create_schedule
-- Column item: the schedule as show_schedule() returns it.
-- Example: select * from jobq_http.submit_schedule('{"kind": "summary", "cron": "0 9 * * MON"}');
create or replace function jobq_http.submit_schedule(
    given jsonb, idempotency_key text default null, is_endpoint boolean default false,
    out created boolean, out item json
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _known constant text[] := array[
        'name', 'kind', 'cron', 'every', 'time_zone', 'payload', 'queue',
        'from_completion', 'gap', 'fold', 'missed', 'catch_up', 'dedup', 'dedup_key',
        'jitter', 'starts_at', 'ends_at', 'priority', 'max_attempts', 'timeout',
        'metadata', 'concurrency_key', 'graph'
    ];
    _given jobq_private.schedule;
    _schedule_id uuid;
begin
    if given is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'given');
    elsif jsonb_typeof(given) <> 'object' or given - _known <> '{}' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'given must be an object with members among %s', _known
        ));
    end if;
    _given := jsonb_populate_record(null::jobq_private.schedule, given);
    _given.name := coalesce(
        _given.name,
        'key-' || encode(
            sha256(convert_to(_given.kind || ':' || idempotency_key, 'UTF8')), 'hex'
        ),
        'unnamed-' || jobq_private.new_id()
    );
    if is_endpoint then
        perform jobq_private.check_endpoints(array[_given.kind]);
    end if;

    select d.schedule_id, d.created into _schedule_id, created
    from jobq_private.schedule_declare(_given, true) as d;
    item := jobq_http.show_schedule(_schedule_id::text);
    if item ->> 'kind' <> _given.kind then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            'schedule %s, of kind %s', _given.name, item ->> 'kind'
        ));
    end if;
end
$$;

revoke all on function jobq_http.submit_schedule from public;
grant execute on function jobq_http.submit_schedule to jobq_producer, jobq_operator;

comment on function jobq_http.submit_schedule is
'Makes a schedule unless its name is in use, and returns it as a JSON document with whether it was created.';

commit;
