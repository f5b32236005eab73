-- Deploy jobq:http to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop routine if exists jobq_private.key_runners;

-- Purpose: the limits, the hold and the jobs of one concurrency key, for show_queue(); with the
-- kinds of the queue, or of its waiting jobs of the key, that have limits for each key instead.
-- Invariant: a key of an undeclared queue has no limits. Counts at most 10,001 waiting jobs.
create or replace function jobq_private.key_document(
    queue text, concurrency_key text, max_rows integer
)
returns json language sql stable as $$
    with limited as materialized (
        select k.*, jobq_private.limit_id(null, k.kind, key_document.concurrency_key) as key_id
        from jobq_private.kind as k
        where num_nonnulls(k.key_max_running, k.key_rate_limit, k.key_budget, k.ordered) > 0
    )
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
                    where j.queue = i.queue and j.state in ('queued', 'retrying')
                    and j.key_id = any(i.key_id || array(select k.key_id from limited as k))
                    limit 10001
                ) as w
            ) as waiting,
            jobq_private.key_runners(i.queue, i.concurrency_key, key_document.max_rows) as runners,
            (
                select coalesce(json_agg(c), '[]')
                from (
                    select k.kind,
                        case when k.ordered then 1 else k.key_max_running end as max_running,
                        k.key_rate_limit as rate_limit,
                        jobq_private.milliseconds(k.key_rate_period) as rate_period_ms,
                        k.key_rate_burst as rate_burst
                    from limited as k
                    where coalesce(k.queue, 'default') = i.queue or exists (
                        select from jobq_private.job as j
                        where j.queue = i.queue and j.key_id = k.key_id
                        and j.state in ('queued', 'retrying')
                    )
                    order by k.kind
                    limit key_document.max_rows
                ) as c
            ) as kinds
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

-- Purpose: the running jobs that hold keys of a queue, for show_queue(): of one key, with those
-- of kinds that have limits for each key, in all queues; or of all keys.
-- Invariant: descents of the indexes of slots.
create or replace function jobq_private.key_runners(
    queue text, concurrency_key text, max_rows integer
)
returns json language sql stable as $$
    select coalesce(json_agg(r order by r.started_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at as started_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.slot is not null
        and j.concurrency_key is not null
        and (key_runners.concurrency_key is null or j.key_id = jobq_private.limit_id(
            key_runners.queue, null, key_runners.concurrency_key
        ))
        union all
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at
        from jobq_private.kind as k
        join jobq_private.job as j on j.kind = k.kind
        where num_nonnulls(k.key_max_running, k.key_rate_limit, k.key_budget, k.ordered) > 0
        and j.concurrency_key = key_runners.concurrency_key and j.slot is not null
        and (j.queue, j.key_id) is distinct from (key_runners.queue, jobq_private.limit_id(
            key_runners.queue, null, key_runners.concurrency_key
        ))
        limit key_runners.max_rows
    ) as r
$$;

-- Purpose: Returns a page of the attempts of a job as JSON documents, in order.
-- Invariant: each attempt once; the next page starts after the number of the last one.
-- Raises: 22004, 22023, JQ001.
-- Argument after: only attempts with a higher number; null for the first page.
-- Argument max_attempts: maximum number, 1 to 1000.
-- Members item: page_attempts
-- Example: select * from jobq_http.page_attempts(:'dead');
create or replace function jobq_http.page_attempts(
    job_id uuid, after integer default null, max_attempts integer default 50
)
returns table (item json, cursor integer) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_count('max_attempts', page_attempts.max_attempts, 1, 1000);
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
grant execute on function jobq_http.page_attempts to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_attempts is 'Returns a page of the attempts of a job as JSON documents, in order.';

-- Purpose: Returns a page of the executions of a job as JSON documents, newest first.
-- Invariant: a one-shot job has one execution, a schedule one per slot, found by its index. The
-- cursor stays valid when its execution is past retention. Slots whose job the overlap rule
-- skipped have no execution. cursor is the slot of the row. Raises: 22004, 22023, JQ001.
-- Argument before: only slots before this one; null for the first page.
-- Argument max_executions: maximum number, 1 to 1000.
-- Members item: execution_document
-- Example: select * from jobq_http.page_executions(:'waiting');
create or replace function jobq_http.page_executions(
    job_id uuid, before timestamptz default null, max_executions integer default 50
)
returns table (item json, cursor timestamptz) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform jobq_private.check_count('max_executions', page_executions.max_executions, 1, 1000);
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = page_executions.job_id
    ) then
        item := jobq_http.show_execution(page_executions.job_id);
        if page_executions.before is null then
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
grant execute on function jobq_http.page_executions to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_executions is 'Returns a page of the executions of a job as JSON documents, newest first.';

-- Purpose: Returns a page of the log of a job as JSON documents, in order or newest first.
-- Invariant: lines are numbered as they are written, so pages do not change, and each
-- starts with a descent of the index. Raises: 22004, 22023, JQ001.
-- Argument after: only lines after this one; null for the first page.
-- Argument max_lines: maximum number, 1 to 1000.
-- Argument before: only lines before this one, the newest first; the greatest bigint for the
-- end of the log.
-- Members item: page_logs
-- Example: select * from jobq_http.page_logs(:'running');
create or replace function jobq_http.page_logs(
    job_id uuid, after bigint default null, max_lines integer default 50,
    before bigint default null
)
returns table (item json, cursor bigint) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform jobq_private.check_count('max_lines', page_logs.max_lines, 1, 1000);
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
grant execute on function jobq_http.page_logs to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_logs is 'Returns a page of the log of a job as JSON documents, in order or newest first.';

-- Purpose: Returns a page of the versions of a schedule as JSON documents, newest first.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Argument before: only versions before this number; null for the first page.
-- Argument max_versions: maximum number, 1 to 1000.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedule_versions('weekly summary');
create or replace function jobq_http.page_schedule_versions(
    schedule text, before integer default null, max_versions integer default 50
)
returns table (item json, cursor integer) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_count('max_versions', page_schedule_versions.max_versions, 1, 1000);
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

-- Purpose: Returns a page of schedules as JSON documents, newest first; cursor continues it.
-- Invariant: reads only; filters as in list_schedules(). Raises: 22004, 22023.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedules();
create or replace function jobq_http.page_schedules(
    status text default null, kind text default null, queue text default null,
    before uuid default null, max_schedules integer default 50, vocabulary text default null
)
returns table (item json, cursor uuid) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when exists (
            select from jobq_internal.list_schedules(
                page_schedules.status, page_schedules.kind, page_schedules.queue, l.schedule_id, 1
            )
        ) then l.schedule_id end
    from jobq_internal.list_schedules(
        page_schedules.status, page_schedules.kind, page_schedules.queue,
        page_schedules.before, page_schedules.max_schedules
    ) as l
    join jobq_private.schedule as s on s.schedule_id = l.schedule_id
    order by l.schedule_id desc
$$;
grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;

comment on function jobq_http.page_schedules is 'Returns a page of schedules as JSON documents, newest first; cursor continues it.';

commit;
