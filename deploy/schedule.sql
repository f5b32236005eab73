-- Deploy jobq:schedule to pg
-- Made by sql/snapshot.py from sql/schedule/: edit that.
begin;
set local role jobq_owner;

-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version, which is the one in force if any is; no
-- name looks like an id. Raises: 22004, JQ007.
create or replace function jobq_private.schedule_find(schedule text)
returns jobq_private.schedule
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule;
begin
    if schedule_find.schedule is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'schedule');
    elsif schedule_find.schedule ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select s.* into _found
        from jobq_private.schedule as s
        where s.schedule_id = schedule_find.schedule::uuid;
    else
        select s.* into _found
        from jobq_private.schedule as s
        where s.name = schedule_find.schedule
        order by s.version desc
        limit 1;
    end if;
    if not found then
        perform jobq_private.raise_error('SCHEDULE_NOT_FOUND', format(
            'schedule %s', left(schedule_find.schedule, 128)
        ));
    end if;
    return _found;
end
$$;

revoke all on function jobq_private.schedule_find from public;

comment on function jobq_private.schedule_find is
'Returns a schedule by its name, or one of its versions by its id.';

-- Purpose: the slots of a schedule in a span of the past that no job stands for.
-- Invariant: not those that tick() has yet to take. A job of any version of the schedule
-- stands for its slot, live or archived. Raises: 22023.
create or replace function jobq_private.backfill_slots(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer
)
returns timestamptz[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := least(
        backfill_slots.until, schedule.ends_at, schedule.next_run_at
    );
    _anchor constant timestamptz := coalesce(
        schedule.starts_at, schedule.next_run_at, schedule.last_tick_at, backfill_slots.since
    );
    _slot timestamptz := backfill_slots.since - interval '1 us';
    _slots timestamptz[] := '{}'::timestamptz[];
begin
    loop
        _slot := jobq_private.schedule_next(
            schedule.parsed, schedule.every, schedule.time_zone, schedule.gap,
            schedule.fold, _anchor, _slot
        );
        exit when not coalesce(_slot < _until, false);
        if cardinality(_slots) = max_slots then
            perform jobq_private.raise_error('INVALID_ARGUMENT', format(
                'the span has more than %s slots (max_slots)', max_slots
            ));
        end if;
        _slots := _slots || _slot;
    end loop;
    return array(
        select u.slot_at
        from unnest(_slots) as u (slot_at)
        where u.slot_at not in (
            select j.slot_at
            from jobq_private.schedule as s
            join jobq.job as j on j.schedule_id = s.schedule_id
            where s.name = schedule.name and j.slot_at = any(_slots)
        )
        order by u.slot_at
    );
end
$$;

revoke all on function jobq_private.backfill_slots from public;

comment on function jobq_private.backfill_slots is
'Returns the slots of a schedule in a span of the past that no job stands for.';

-- Purpose: refuse a backfill that cannot be meant.
-- Raises: 22004, 22023, JQ002.
create or replace function jobq_private.check_backfill(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer,
    dry_run boolean, reason text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when not since < until
        then 'since must lie before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'a span lies between 1900 and now; later slots fire by themselves'
        when max_slots not between 1 and 10000
        then 'max_slots must be from 1 to 10000'
        when length(reason) > 512
        then 'reason must have at most 512 characters'
        when schedule.from_completion
        then 'a schedule that counts from completion has no slots in the past'
    end;
begin
    if num_nulls(since, until, max_slots, dry_run) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'since, until, max_slots and dry_run');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    elsif schedule.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', schedule.name, schedule.version
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_backfill from public;

comment on function jobq_private.check_backfill is
'Refuses a backfill that cannot be meant.';

-- Purpose: the schedules that fire by themselves, each with when: at its next slot, or when one that
-- could not fire is tried again.
-- Invariant: reads only; schedule_due_idx serves it, also under a lock of its rows. Raises: nothing.
create or replace view jobq_private.due_schedule as
select s.schedule_id, greatest(s.next_run_at, s.retry_at) as due_at
from jobq_private.schedule as s
where s.status = 'active' and s.next_run_at is not null;

revoke all on table jobq_private.due_schedule from public;

comment on view jobq_private.due_schedule is
'The schedules that fire by themselves, each with when.';

-- Purpose: take the slots that are due, and move each schedule to the one after.
-- Invariant: SKIP LOCKED, so no caller waits for another; next_run_at is compared and
-- set, and the jobs are stored by the same transaction, so each slot comes once. Locked
-- by one statement and read by the next: its snapshot has what others have committed
-- until then. Earliest first; what the schedules of one call leave of max_schedules is
-- shared among them for slots that they have missed; one that counts from completion
-- can have missed none. A schedule whose zone is gone is paused; one that could not fire waits
-- until it is to be tried again. With only_id no other is taken. Raises: nothing.
create or replace function jobq_private.schedule_advance(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns jobq_private.new_job[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _due uuid[];
    _jobs jobq_private.new_job[];
begin
    select array_agg(l.schedule_id) into _due
    from (
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= schedule_advance.until
        and (schedule_advance.only_id is null or s.schedule_id = schedule_advance.only_id)
        order by s.due_at
        limit schedule_advance.max_schedules
        for no key update skip locked
    ) as l;
    if _due is null then
        return null;
    end if;

    with planned as materialized (
        select s.schedule_id, s.next_run_at as due_at, p.slots, p.next_run_at, p.problem
        from jobq_private.schedule as s
        cross join lateral jobq_private.schedule_slots(
            s.parsed, s.every, s.time_zone, s.gap, s.fold,
            case when s.from_completion then 'all' else s.missed end, s.catch_up,
            s.ends_at, s.next_run_at, schedule_advance.until,
            case when s.from_completion then 1
                else schedule_advance.max_schedules / cardinality(_due)
            end
        ) as p
        where s.schedule_id = any (_due)
    ),
    advanced as (
        update jobq_private.schedule as s
        set
            next_run_at = case
                when not s.from_completion or p.slots = '{}' then p.next_run_at
            end,
            last_tick_at = coalesce(p.slots[cardinality(p.slots)], s.last_tick_at),
            status = case when p.problem is null then 'active' else 'paused' end,
            paused_at = case when p.problem is not null then now() end,
            pause_reason = p.problem,
            retry_at = null,
            failure = null
        from planned as p
        where s.schedule_id = p.schedule_id and s.next_run_at = p.due_at
        returning s.*, p.slots
    )
    select array_agg(row(
        f.ordinal, a.kind, a.payload, a.queue, f.slot_at + random() * a.jitter,
        a.priority, a.max_attempts, a.timeout,
        format('job_%s_%s', a.schedule_id, floor(extract(epoch from f.slot_at) * 1000)),
        case when a.dedup <> 'enqueue' then a.dedup_key end, a.dedup, a.metadata,
        a.schedule_id, f.slot_at, a.concurrency_key, null, null, null, null, null,
        null
    )::jobq_private.new_job) into _jobs
    from (
        select
            g.schedule_id, u.slot_at,
            row_number() over (order by u.slot_at, g.schedule_id)::integer as ordinal
        from advanced as g
        cross join lateral unnest(g.slots) as u (slot_at)
    ) as f
    join advanced as a on a.schedule_id = f.schedule_id;
    return _jobs;
end
$$;

revoke all on function jobq_private.schedule_advance from public;

comment on function jobq_private.schedule_advance is
'Takes the slots that are due, as new jobs, and moves each schedule to the one after.';

-- Purpose: what tick() does when nothing goes wrong: take the slots that are due, and store their
-- jobs with the graphs behind them.
-- Invariant: all or none. With only_id the slots of that schedule alone.
-- Raises: 42501, JQ004.
create or replace function jobq_private.fire_due(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _jobs constant jobq_private.new_job[] := jobq_private.schedule_advance(
        fire_due.max_schedules, fire_due.until, fire_due.only_id
    );
begin
    if _jobs is null then
        return;
    end if;
    for schedule_id, slot_at, job_id, created in
    with fired as materialized (
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.schedule_fire(_jobs) as f
        join unnest(_jobs) as j on j.ordinal = f.ordinal
    ),
    awaiting as (
        update jobq_private.schedule as s
        set awaited_job_id = f.job_id
        from fired as f
        where s.schedule_id = f.schedule_id and s.from_completion
    )
    select f.schedule_id, f.slot_at, f.job_id, f.created
    from fired as f
    order by f.slot_at, f.schedule_id
    loop
        if created then
            perform jobq_private.hang_graph(job_id, s.graph)
            from jobq_private.schedule as s
            where s.schedule_id = fire_due.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;

revoke all on function jobq_private.fire_due from public;

comment on function jobq_private.fire_due is
'Turns the slots that are due into jobs, all or none.';

-- Purpose: fire the schedules that are due one by one, since one of them cannot.
-- Invariant: what fails is undone, and it alone; it keeps its slot, and is tried again a minute
-- later. After two seconds the rest is left to the next call. Raises: nothing.
-- Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
create or replace function jobq_private.fire_each(max_schedules integer, until timestamptz)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _stop_at constant timestamptz := clock_timestamp() + interval '2 s';
    _due uuid[];
    _id uuid;
    _detail text;
begin
    select coalesce(array_agg(d.schedule_id), '{}') into _due
    from (
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= fire_each.until
        order by s.due_at
        limit fire_each.max_schedules
    ) as d;
    foreach _id in array _due loop
        exit when clock_timestamp() > _stop_at;
        begin
            return query
            select *
            from jobq_private.fire_due(
                greatest(fire_each.max_schedules / cardinality(_due), 1), fire_each.until, _id
            );
        exception
            when transaction_rollback then
                raise;
            when others then
                get stacked diagnostics _detail = pg_exception_detail;
                update jobq_private.schedule as s
                set
                    retry_at = clock_timestamp() + interval '1 min',
                    failure = left(concat_ws(': ', sqlerrm, nullif(_detail, '')), 512)
                where s.schedule_id = (
                    select f.schedule_id
                    from jobq_private.schedule as f
                    where f.schedule_id = _id and f.status = 'active'
                    for no key update skip locked
                );
        end;
    end loop;
end
$$;

revoke all on function jobq_private.fire_each from public;

comment on function jobq_private.fire_each is
'Fires the schedules that are due one by one, and notes which cannot.';

-- Purpose: the graph of a schedule as the HTTP API takes and shows it.
-- Invariant: lengths of time are milliseconds; the rest is as it was given. Raises: nothing.
create or replace function jobq_private.graph_document(graph jsonb)
returns jsonb
language sql
stable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('jobs', jsonb_agg(
        case
            when n.node ->> 'timeout' is null then n.node - 'timeout'
            else n.node - 'timeout' || jsonb_build_object(
                'timeout_ms',
                jobq_private.milliseconds((n.node ->> 'timeout')::interval)
            )
        end
        order by n.place
    ))
    from jsonb_array_elements(graph_document.graph -> 'jobs')
        with ordinality as n (node, place)
$$;

revoke all on function jobq_private.graph_document from public;

comment on function jobq_private.graph_document is
'The graph of a schedule as the HTTP API takes and shows it.';

-- Purpose: check the definition of a schedule, and fill in what it leaves open.
-- Invariant: what passes here can fire at any later time without another check; two
-- definitions that mean the same become equal. Only the schema of the kind's payload
-- may change afterwards; it then holds for new definitions.
-- Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ009.
-- Never: QUEUE_FULL.
create or replace function jobq_private.schedule_check(given jobq_private.schedule)
returns jobq_private.schedule
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    _set jobq_private.schedule := given;
    _job jobq_private.new_job;
begin
    _set.payload := coalesce(given.payload, '{}');
    _set.metadata := coalesce(given.metadata, '{}');
    _set.from_completion := coalesce(given.from_completion, false);
    _set.time_zone := coalesce(given.time_zone, 'UTC');
    _set.gap := coalesce(given.gap, 'auto');
    _set.fold := coalesce(given.fold, 'auto');
    _set.jitter := coalesce(given.jitter, '0');
    _set.ends_at := nullif(given.ends_at, 'infinity');
    _set.missed := coalesce(
        given.missed, case when given.every is null then 'all' else 'latest' end
    );
    _set.catch_up := coalesce(
        given.catch_up, case when _set.missed = 'none' then interval '1 min' end
    );
    _set.dedup := coalesce(given.dedup, case
        when given.dedup_key is not null
        then (
            select case when s.dedup in ('debounce', 'throttle') then 'skip' else s.dedup end
            from jobq_private.settings_for(given.kind, given.queue) as s
        )
        when given.every is null then 'enqueue'
        else 'skip'
    end);
    _set.dedup_key := case
        when _set.dedup <> 'enqueue' then coalesce(given.dedup_key, given.name)
    end;
    perform jobq_private.schedule_refuse(_set);

    _set.every := make_interval(
        secs => extract(epoch from given.every)::double precision
    );
    _set.parsed := null;
    if given.cron is not null then
        _set.cron := regexp_replace(btrim(given.cron), '\s+', ' ', 'g');
        _set.parsed := jobq_private.cron_parse(given.cron);
    end if;
    _job.ordinal := 1;
    _job.kind := _set.kind;
    _job.payload := _set.payload;
    _job.queue := _set.queue;
    _job.priority := _set.priority;
    _job.max_attempts := _set.max_attempts;
    _job.timeout := _set.timeout;
    _job.dedup_key := _set.dedup_key;
    _job.concurrency_key := _set.concurrency_key;
    _job.metadata := _set.metadata;
    _job.schedule_id := jobq_private.id_floor('epoch');
    perform jobq_private.check_new_jobs(array[_job]);
    perform jobq_private.check_payload_schemas(array[_job]);
    if given.graph is not null then
        perform jobq_private.check_graph(given.graph, given.kind);
    end if;
    return _set;
end
$$;

revoke all on function jobq_private.schedule_check from public;

comment on function jobq_private.schedule_check is
'Checks the definition of a schedule, and fills in what it leaves open.';

-- Purpose: make a definition the one in force under its name: nothing when it is
-- already, else a new version that takes over from the old. With keeps, a version in
-- force stays, whatever it says.
-- Invariant: who changes a name holds the row of its newest version, as does tick(); so
-- a slot in the making goes to one version. Unique keys decide between callers that see
-- none, or one that is retired by then; the next look has a new snapshot. Locks are "no
-- key update": a caller may hold an older version, to which foreign keys refer. The new
-- version goes on where the old one is: at its next slot if the timing is the same, else
-- at the first of its own that was not yet fired. A pause stays.
-- A name that somebody holds whose schedules the caller may not see is refused.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_declare(
    given jobq_private.schedule, keeps boolean,
    out schedule_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _new jobq_private.schedule := jobq_private.schedule_check(given);
    _old jobq_private.schedule;
begin
    for _try in 1 .. 20 loop
        select s.* into _old
        from jobq_private.schedule as s
        where s.name = _new.name
        order by s.version desc
        limit 1
        for no key update;
        if _old.status <> 'retired' and (
            schedule_declare.keeps
            or jobq_private.schedule_definition(_old)
            = jobq_private.schedule_definition(_new)
        ) then
            schedule_id := _old.schedule_id;
            created := false;
            return;
        end if;

        _new := jobq_private.schedule_succeed(_new, _old);
        update jobq_private.schedule as s
        set
            status = 'retired', retired_at = now(), next_run_at = null,
            awaited_job_id = null
        where s.schedule_id = _old.schedule_id and s.status <> 'retired';
        insert into jobq_private.schedule select _new.* on conflict do nothing;
        created := found;
        exit when created;
    end loop;
    if not created then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            'schedule %s', _new.name
        ));
    end if;
    update jobq_private.schedule as s
    set replaced_by_id = _new.schedule_id
    where s.schedule_id = _old.schedule_id;
    schedule_id := _new.schedule_id;
    perform jobq_private.record_audit(
        'put_schedule', _new.name, 'version ' || _new.version
    );
end
$$;

revoke all on function jobq_private.schedule_declare from public;

comment on function jobq_private.schedule_declare is
'Makes a definition the one in force under its name, and returns its version''s id and whether it is new.';

-- Purpose: what of a schedule its author declares, for comparison.
-- Invariant: reads nothing; the parsed form follows from the expression. Raises:
-- nothing.
create or replace function jobq_private.schedule_definition(
    schedule jobq_private.schedule
)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_jsonb(schedule) - array[
        'schedule_id', 'version', 'previous_version_id', 'replaced_by_id', 'status',
        'parsed', 'next_run_at', 'awaited_job_id', 'last_tick_at', 'paused_at',
        'pause_reason', 'retry_at', 'failure', 'login', 'region', 'created_at',
        'retired_at'
    ]
$$;

revoke all on function jobq_private.schedule_definition from public;

comment on function jobq_private.schedule_definition is
'Returns what of a schedule its author declares.';

-- Purpose: a schedule as the HTTP API shows it, where it is a job that fires by cron.
-- Invariant: the two next instants are shown by the clocks of its zone, while the
-- server knows it. Payload passes as it is stored. Raises: 22023.
create or replace function jobq_private.schedule_document(
    schedule jobq_private.schedule, vocabulary text default null
)
returns json
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return json_build_object(
        'job_id', schedule.schedule_id,
        'endpoint', schedule.kind,
        'endpoint_type', (
            select e.type from jobq_private.endpoint as e where e.endpoint = schedule.kind
        ),
        'trigger', 'CRON',
        'status', upper(schedule.status),
        'version', schedule.version,
        'previous_version_id', schedule.previous_version_id,
        'replaced_by_id', schedule.replaced_by_id,
        'name', schedule.name,
        'cron', schedule.cron,
        'every_ms', jobq_private.milliseconds(schedule.every),
        'from_completion', schedule.from_completion,
        'timezone', schedule.time_zone,
        'gap', schedule.gap,
        'fold', schedule.fold,
        'missed', schedule.missed,
        'catch_up_ms', jobq_private.milliseconds(schedule.catch_up),
        'dedup', schedule.dedup,
        'dedup_key', schedule.dedup_key,
        'concurrency_key', schedule.concurrency_key,
        'jitter_ms', jobq_private.milliseconds(schedule.jitter),
        'starts_at', coalesce(schedule.starts_at, schedule.created_at),
        'ends_at', schedule.ends_at,
        'next_run_at', jobq_private.moment_in(
            case when schedule.status = 'active' then schedule.next_run_at end,
            schedule.time_zone
        ),
        'last_tick_at', jobq_private.moment_in(
            schedule.last_tick_at, schedule.time_zone
        ),
        jobq_private.payload_name(vocabulary), schedule.payload,
        'kind', schedule.kind,
        'queue', schedule.queue,
        'metadata', schedule.metadata,
        'graph', jobq_private.graph_document(schedule.graph),
        'priority', schedule.priority,
        'max_attempts', schedule.max_attempts,
        'timeout_ms', jobq_private.milliseconds(schedule.timeout),
        'paused_at', schedule.paused_at,
        'pause_reason', schedule.pause_reason,
        'region', schedule.region,
        'created_at', schedule.created_at,
        'retired_at', schedule.retired_at
    );
end
$$;

revoke all on function jobq_private.schedule_document from public;

comment on function jobq_private.schedule_document is
'A schedule as the HTTP API shows it.';

-- Purpose: a page of the executions of a schedule's version, by slot, the newest first.
-- Invariant: one descent of the index on schedules for each partition. The cursor is the
-- slot itself, so that it holds when its execution is past retention. A slot that the
-- overlap rule gave to another job has none. Raises: nothing.
create or replace function jobq_private.schedule_executions(
    schedule_id uuid, before timestamptz, max_executions integer
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    return query
    select
        jobq_private.execution_document(p.job),
        case when p.n < count(*) over () then (p.job).slot_at end
    from (
        select j as job, row_number() over (order by j.slot_at desc) as n
        from jobq.job as j
        where j.schedule_id = schedule_executions.schedule_id
        and j.slot_at < coalesce(schedule_executions.before, 'infinity')
        order by j.slot_at desc
        limit schedule_executions.max_executions + 1
    ) as p
    order by p.n
    limit schedule_executions.max_executions;
end
$$;

revoke all on function jobq_private.schedule_executions from public;

comment on function jobq_private.schedule_executions is
'Returns a page of the executions of a schedule''s version, the newest first.';

-- Purpose: store the jobs of slots that were taken, by the overlap rule of each.
-- Invariant: the checks were made when the schedule was declared, and are not repeated:
-- a slot that could be refused would be lost, or hold up all others. One statement
-- finds the slots that are to be skipped, one stores the first of each key and all that
-- may overlap; what is left goes in one by one, in the order of keys. While grants by queue are
-- enforced, who has declared the schedule must still be allowed to add what it adds.
-- Raises: 42501, JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.schedule_fire(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ordinals integer[];
    _ids uuid[];
    _done integer[];
    _job jobq_private.new_job;
begin
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(s.login, s.queue, s.kind, s.dedup, s.graph)
        from jobq_private.schedule as s
        where s.schedule_id in (select j.schedule_id from unnest(schedule_fire.jobs) as j);
    end if;
    select array_agg(j.ordinal), array_agg(l.job_id) into _ordinals, _ids
    from unnest(schedule_fire.jobs) as j
    join jobq_private.job as l on l.kind = j.kind and l.dedup_key = j.dedup_key
    where j.dedup = 'skip' and l.dedup is not null;
    return query
    select s.ordinal, s.job_id, false
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := coalesce(_ordinals, '{}');

    select array_agg(s.ordinal), array_agg(s.job_id) into _ordinals, _ids
    from jobq_private.schedule_store((
        select array_agg(f.job)
        from (
            select j as job, j.dedup_key, j.ordinal, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(schedule_fire.jobs) as j
        ) as f
        where (f.dedup_key is null or f.place = 1)
        and f.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
    )) as s;
    return query
    select s.ordinal, s.job_id, true
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := _done || _ordinals;

    for _job in
        select j.*
        from unnest(schedule_fire.jobs) as j
        where j.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
    end loop;
end
$$;

revoke all on function jobq_private.schedule_fire from public;

comment on function jobq_private.schedule_fire is
'Stores the jobs of slots that were taken, by the overlap rule of each.';

-- Purpose: the first slot of a schedule strictly after an instant. A fixed rate counts
-- from anchor, which is any of its slots.
-- Invariant: pure but for the zone database. An interval holds seconds alone, so a slot
-- depends on no zone; numeric arithmetic, so none drifts. Raises: 22023 for a zone that
-- the server no longer knows.
create or replace function jobq_private.schedule_next(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    anchor timestamptz,
    after timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if every is null then
        return jobq_private.cron_next(cron, time_zone, after, gap, fold);
    elsif anchor = after then
        return anchor + every;
    end if;
    return anchor + every * (floor(
        extract(epoch from after - anchor) / extract(epoch from every)
    ) + 1)::double precision;
end
$$;

revoke all on function jobq_private.schedule_next from public;

comment on function jobq_private.schedule_next is
'Returns the first slot of a schedule strictly after an instant, or null.';

-- Purpose: the first slot of a schedule strictly after an instant, and within its
-- bounds.
-- Invariant: a fixed rate counts from starts_at, else from the slot that it had next,
-- else from the instant. Raises: 22023 for a zone that the server no longer knows.
create or replace function jobq_private.schedule_first(
    schedule jobq_private.schedule, after timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _after constant timestamptz := greatest(
        schedule_first.after, schedule.starts_at - interval '1 us'
    );
    _first constant timestamptz := jobq_private.schedule_next(
        schedule.parsed, schedule.every, schedule.time_zone, schedule.gap,
        schedule.fold,
        coalesce(schedule.starts_at, schedule.next_run_at, _after), _after
    );
begin
    return case when _first < coalesce(schedule.ends_at, 'infinity') then _first end;
end
$$;

revoke all on function jobq_private.schedule_first from public;

comment on function jobq_private.schedule_first is
'Returns the first slot of a schedule strictly after an instant and within its bounds, or null.';

-- Purpose: set the next slot of schedules that count from the completion of their last
-- job, once that job has ended.
-- Invariant: one statement sees a job in either the live table or the archive; a job
-- that is in neither has ended long ago. SKIP LOCKED. Raises: nothing.
create or replace function jobq_private.schedule_follow(max_schedules integer)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    with ended as materialized (
        select s.schedule_id, s.awaited_job_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and not exists (
            select from jobq_private.job as j where j.job_id = s.awaited_job_id
        )
        limit schedule_follow.max_schedules
        for no key update skip locked
    ),
    timed as materialized (
        select e.schedule_id, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = e.awaited_job_id
            and a.finished_at >= jobq_private.id_time(e.awaited_job_id)
        ), now()) as finished_at
        from ended as e
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when t.finished_at + s.every < coalesce(s.ends_at, 'infinity')
            then greatest(t.finished_at, s.last_tick_at) + s.every
        end
    from timed as t
    where s.schedule_id = t.schedule_id and s.awaited_job_id is not null;
end
$$;

revoke all on function jobq_private.schedule_follow from public;

comment on function jobq_private.schedule_follow is
'Sets the next slot of schedules whose awaited job has ended.';

-- Purpose: a schedule by name or id, held by this transaction so that it can be
-- changed.
-- Invariant: a name yields its newest version, also when another transaction makes one
-- while this one waits: whoever makes one holds the row of the version before it.
-- Raises: 22004, JQ007.
create or replace function jobq_private.schedule_hold(schedule text)
returns jobq_private.schedule
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule;
    _held jobq_private.schedule;
begin
    loop
        _found := jobq_private.schedule_find(schedule_hold.schedule);
        exit when _found.schedule_id = _held.schedule_id;
        select s.* into _held
        from jobq_private.schedule as s
        where s.schedule_id = _found.schedule_id
        for no key update;
    end loop;
    return _held;
end
$$;

revoke all on function jobq_private.schedule_hold from public;

comment on function jobq_private.schedule_hold is
'Returns a schedule by name or id, held by this transaction.';

-- Purpose: the last slot of a schedule until an instant, given one that is not later.
-- Invariant: its cost does not grow with the number of slots between. Raises: 22023 for
-- a zone that the server no longer knows.
create or replace function jobq_private.schedule_last(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    slot_at timestamptz,
    until timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if every is null then
        return coalesce(
            jobq_private.cron_last(cron, time_zone, slot_at, until, gap, fold), slot_at
        );
    end if;
    return slot_at + every * floor(
        extract(epoch from until - slot_at) / extract(epoch from every)
    )::double precision;
end
$$;

revoke all on function jobq_private.schedule_last from public;

comment on function jobq_private.schedule_last is
'Returns the last slot of a schedule until an instant, given one that is not later.';

-- Purpose: the execution of a schedule's version that started last, or null.
-- Invariant: one descent of the index on schedules for each partition; live ones first,
-- for they are the later. Raises: nothing.
create or replace function jobq_private.schedule_last_execution(schedule_id uuid)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    return (
        select json_build_object(
            'execution_id', j.job_id,
            'status', jobq_private.execution_status(j.state, j.run_at),
            'started_at', j.claimed_at,
            'completed_at', j.finished_at,
            'attempt_number', j.attempts
        )
        from jobq.job as j
        where j.schedule_id = schedule_last_execution.schedule_id
        and (j.state in ('running', 'retrying') or j.finished_at is not null)
        order by j.slot_at desc
        limit 1
    );
end
$$;

revoke all on function jobq_private.schedule_last_execution from public;

comment on function jobq_private.schedule_last_execution is
'Returns the execution of a schedule''s version that started last, or null.';

-- Purpose: a version of a schedule never changes in what it says; a new version does.
-- Invariant: fires only for an UPDATE that names one of these columns, so no tick pays
-- for it. Raises: JQ002.
create or replace function jobq_private.refuse_schedule_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('SCHEDULE_IMMUTABLE', format(
        'schedule %s, version %s', old.name, old.version
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_schedule_change from public;

comment on function jobq_private.refuse_schedule_change is
'Refuses a change of what a version of a schedule says.';

create or replace trigger schedule_version
before update of
schedule_id, name, version, previous_version_id, kind, queue, payload, metadata,
priority, max_attempts, timeout, cron, parsed, every, from_completion, time_zone, gap,
fold, missed, catch_up, dedup, dedup_key, concurrency_key, graph, jitter, starts_at, ends_at, created_at
on jobq_private.schedule
for each row execute function jobq_private.refuse_schedule_change();

-- Purpose: a schedule only goes forward: its last slot grows, and what is retired stays
-- so.
-- Invariant: with the check that next_run_at lies behind last_tick_at, no slot can be
-- set to fire again, whoever asks. A retired row takes the id of its successor, once.
-- Raises: JQ002.
create or replace trigger schedule_progress
before update on jobq_private.schedule
for each row
when (
    new.last_tick_at is distinct from greatest(new.last_tick_at, old.last_tick_at)
    or (
        old.status = 'retired'
        and (new.status <> 'retired' or old.replaced_by_id is not null)
    )
)
execute function jobq_private.refuse_schedule_change();

-- Purpose: refuse the definition of a schedule that cannot be meant.
-- Invariant: reads the zone database alone; what a job has too is checked as a job's.
-- Raises: 22004, 22023, JQ009.
create or replace function jobq_private.schedule_refuse(given jobq_private.schedule)
returns void
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when length(given.name) not between 1 and 128
            or given.name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then 'name must have 1 to 128 characters, and not be a UUID'
        when num_nonnulls(given.cron, given.every) <> 1
        then 'one of cron and every must be given'
        when given.from_completion and given.every is null
        then 'from_completion needs every, not cron'
        when given.every not between '1 s' and '3660 days'
            or extract(month from given.every) <> 0
            or extract(year from given.every) <> 0
        then 'every must be from 1 s to 3660 days, without months; for those use cron'
        when given.missed not in ('all', 'latest', 'none')
        then 'missed must be all, latest or none'
        when given.catch_up not between '1 s' and '3660 days'
        then 'catch_up must be from 1 s to 3660 days'
        when given.dedup not in ('skip', 'enqueue', 'replace')
        then 'dedup must be skip, enqueue or replace'
        when given.jitter not between '0' and '1 day'
        then 'jitter must be from 0 to 1 day'
        when given.starts_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
            or given.ends_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
        then 'starts_at and ends_at must be instants from 1900 to 9998'
        when given.starts_at >= given.ends_at
        then 'starts_at must lie before ends_at'
    end;
begin
    if given.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
    perform jobq_private.cron_check(given.time_zone, given.gap, given.fold);
end
$$;

revoke all on function jobq_private.schedule_refuse from public;

comment on function jobq_private.schedule_refuse is
'Refuses the definition of a schedule that cannot be meant.';

-- Purpose: which slots of a due schedule fire now, and which one comes after them.
-- Invariant: at most max_slots; the next is counted from the slot that fires, not from
-- now, so a schedule that was left alone for long catches up call by call. Policy none
-- is latest with a catch-up window of its own. Takes columns and not the row, whose
-- payload would be read for it. A zone that the server no longer knows is told, so that
-- one schedule does not hold up all others. Raises: nothing.
create or replace function jobq_private.schedule_slots(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    missed text,
    catch_up interval,
    ends_at timestamptz,
    due_at timestamptz,
    until timestamptz,
    max_slots integer,
    out slots timestamptz[],
    out next_run_at timestamptz,
    out problem text
)
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _end constant timestamptz := coalesce(schedule_slots.ends_at, 'infinity');
    _oldest constant timestamptz := coalesce(until - catch_up, '-infinity');
begin
    slots := '{}';
    next_run_at := due_at;
    if missed <> 'all' then
        next_run_at := jobq_private.schedule_last(
            cron, every, time_zone, gap, fold, due_at,
            least(until, _end - interval '1 us')
        );
    end if;
    if next_run_at < _oldest then
        next_run_at := jobq_private.schedule_next(
            cron, every, time_zone, gap, fold, next_run_at, case
                when missed = 'all' then _oldest - interval '1 us' else until
            end
        );
    end if;
    while next_run_at <= until and next_run_at < _end
        and cardinality(slots) < max_slots
    loop
        slots := slots || next_run_at;
        next_run_at := jobq_private.schedule_next(
            cron, every, time_zone, gap, fold, next_run_at, next_run_at
        );
    end loop;
    next_run_at := case when next_run_at < _end then next_run_at end;
exception
    when invalid_parameter_value then
        slots := '{}';
        next_run_at := due_at;
        problem := sqlerrm;
end
$$;

revoke all on function jobq_private.schedule_slots from public;

comment on function jobq_private.schedule_slots is
'Tells which slots of a due schedule fire now, and which one comes after them.';

-- Purpose: how the executions of a schedule's version went that ended in the last 24
-- hours.
-- Invariant: reads the partitions of two days, by the index on schedules. Cancelled
-- ones are left out: they say nothing of the work. Raises: nothing.
create or replace function jobq_private.schedule_statistics(
    schedule_id uuid, out total bigint, out succeeded bigint, out failed bigint,
    out avg_duration_ms bigint, out p99_duration_ms bigint
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    select
        count(*), count(*) filter (where a.state = 'succeeded'),
        count(*) filter (where a.state = 'dead'),
        jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)),
        jobq_private.milliseconds(
            percentile_disc(0.99) within group (order by a.finished_at - a.claimed_at)
        )
    into total, succeeded, failed, avg_duration_ms, p99_duration_ms
    from jobq_private.job_archive as a
    where a.schedule_id = schedule_statistics.schedule_id
    and a.finished_at >= now() - interval '24 hours'
    and a.state in ('succeeded', 'dead');
end
$$;

revoke all on function jobq_private.schedule_statistics from public;

comment on function jobq_private.schedule_statistics is
'Tells how the executions of a schedule''s version went that ended in the last 24 hours.';

-- Purpose: insert the jobs of slots by one statement, but for those whose dedup key a
-- live job holds.
-- Invariant: unique indexes alone decide between concurrent callers; in the order of
-- keys, so that batches cannot deadlock on them. Returns what was stored. Raises:
-- nothing.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ids constant uuid[] := array(
        select jobq_private.new_id() from unnest(schedule_store.jobs)
    );
    _stored uuid[];
    _queues text[];
    _has_keys boolean;
begin
    with stored as (
        insert into jobq_private.job as j (
            -- columns of jobq_private.job_rows:
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, lane_id, expires_at, keep, state, batch_id,
            is_awaited
            -- end
        )
        select
            -- the same of r:
            r.job_id, r.kind, r.payload, r.queue, r.run_at, r.priority, r.max_attempts,
            r.timeout, r.lease, r.idempotency_key, r.dedup_key, r.dedup, r.metadata,
            r.schedule_id, r.slot_at, r.delivery_version, r.concurrency_key, r.lane_id,
            r.expires_at, r.keep, r.state, r.batch_id, r.is_awaited
            -- end
        from jobq_private.job_rows(schedule_store.jobs, _ids) as r
        order by r.kind, r.dedup_key, r.job_id
        on conflict (kind, dedup_key, (case when dedup is null then job_id end))
        where dedup_key is not null do nothing
        returning j.job_id, j.queue, j.run_at, j.lane_id
    )
    select
        array_agg(s.job_id),
        array_agg(distinct s.queue) filter (where s.run_at < now() + interval '60 s'),
        bool_or(s.lane_id is not null)
    into _stored, _queues, _has_keys
    from stored as s;

    if _has_keys then
        perform jobq_private.call_lanes(_stored);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query
    select j.ordinal, _ids[j.ordinality]
    from unnest(schedule_store.jobs) with ordinality as j
    where _ids[j.ordinality] = any (_stored);
end
$$;

revoke all on function jobq_private.schedule_store from public;

comment on function jobq_private.schedule_store is
'Inserts the jobs of slots, but for those whose dedup key a live job holds, and wakes their queues.';

-- Purpose: a new version of a schedule, and where it starts, given the one before it,
-- if any.
-- Invariant: no slot is lost between the two, none fires in both: last_tick_at goes on,
-- and a slot that was due before the change is still due, if the new calendar has it
-- too. Raises: nothing.
create or replace function jobq_private.schedule_succeed(
    new jobq_private.schedule, old jobq_private.schedule
)
returns jobq_private.schedule
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _next jobq_private.schedule := new;
    _timing constant text[] := array[
        'cron', 'every', 'from_completion', 'time_zone', 'gap', 'fold', 'starts_at',
        'ends_at'
    ];
    _is_alive constant boolean := coalesce(old.status <> 'retired', false);
    _is_same constant boolean := not exists (
        select from unnest(_timing) as t (name)
        where to_jsonb(new) -> t.name is distinct from to_jsonb(old) -> t.name
    );
begin
    _next.schedule_id := jobq_private.new_id();
    _next.version := coalesce(old.version, 0) + 1;
    _next.previous_version_id := old.schedule_id;
    _next.replaced_by_id := null;
    _next.region := 'default';
    _next.login := session_user;
    _next.retry_at := null;
    _next.failure := null;
    _next.created_at := now();
    _next.retired_at := null;
    _next.status := case when _is_alive then old.status else 'active' end;
    _next.paused_at := case when _is_alive then old.paused_at end;
    _next.pause_reason := case when _is_alive then old.pause_reason end;
    _next.last_tick_at := old.last_tick_at;
    _next.next_run_at := case when _is_alive then old.next_run_at end;
    _next.awaited_job_id := case
        when _is_alive and new.from_completion then old.awaited_job_id
    end;
    if not (_is_alive and _is_same) and _next.awaited_job_id is null then
        _next.next_run_at := jobq_private.schedule_first(_next, case
            when old.status = 'active' and old.next_run_at <= clock_timestamp()
            then old.next_run_at - interval '1 us'
            else clock_timestamp()
        end);
    end if;
    return _next;
end
$$;

revoke all on function jobq_private.schedule_succeed from public;

comment on function jobq_private.schedule_succeed is
'Returns a new version of a schedule, with the slot at which it starts.';

-- Purpose: make the jobs of a schedule's slots in a span of the past that did not fire.
-- Invariant: each slot once, also beside tick() and other calls: the schedule's row is held. What
-- is known of a slot is its job, so beyond the retention it counts as not fired. The overlap
-- rule does not hold: each slot has its job, due at once, in the order of the slots. All or
-- none, and none where the span has too many. A paused schedule can be backfilled, and so can
-- a span before its start.
-- Raises: 22004, 22023, 42501, JQ002, JQ004, JQ007.
-- Argument since: slots at or after this instant.
-- Argument until: slots before this instant, which is not later than now.
-- Argument max_slots: a span with more slots is refused, 1 to 10000.
-- Argument dry_run: true makes nothing, and returns the slots that would be.
-- Argument reason: why, for the audit; at most 512 characters.
-- Column job_id: the job that was made; null for a dry run.
-- Example: select * from jobq.backfill_schedule('weekly summary', now() - interval '30 days', now(), dry_run => true);
create or replace function jobq.backfill_schedule(
    schedule text,
    since timestamptz,
    until timestamptz,
    max_slots integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns table (slot_at timestamptz, job_id uuid)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_hold(
        backfill_schedule.schedule
    );
    _slots timestamptz[];
    _jobs jobq_private.new_job[];
begin
    perform jobq_private.check_backfill(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots,
        backfill_schedule.dry_run, backfill_schedule.reason
    );
    _slots := jobq_private.backfill_slots(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots
    );
    if backfill_schedule.dry_run then
        return query select u, null::uuid from unnest(_slots) as u;
        return;
    end if;
    _jobs := array(
        select row(
            u.n, _found.kind, _found.payload, _found.queue, now(), _found.priority,
            _found.max_attempts, _found.timeout,
            format('job_%s_%s', _found.schedule_id, floor(extract(epoch from u.at) * 1000)),
            null, 'enqueue', _found.metadata, _found.schedule_id, u.at,
            _found.concurrency_key, null, null, null, null, null, null
        )::jobq_private.new_job
        from unnest(_slots) with ordinality as u (at, n)
    );
    for slot_at, job_id in
        select j.slot_at, f.job_id
        from jobq_private.schedule_fire(_jobs) as f
        join unnest(_jobs) as j on j.ordinal = f.ordinal
        order by f.ordinal
    loop
        if _found.graph is not null then
            perform jobq_private.hang_graph(job_id, _found.graph);
        end if;
        return next;
    end loop;
    perform jobq_private.record_audit(
        'backfill_schedule', _found.name,
        concat_ws(': ', cardinality(_slots) || ' slots', backfill_schedule.reason)
    );
end
$$;

revoke all on function jobq.backfill_schedule from public;
grant execute on function jobq.backfill_schedule to jobq_operator;

comment on function jobq.backfill_schedule is
'Makes the jobs of a schedule''s slots in a span of the past that did not fire, each once.';

-- Purpose: declare a recurring job under a name; declaring it again is harmless.
-- Invariant: the same definition changes nothing; another one becomes a new version,
-- and the old one history. So every deployment may declare its schedules, all at once
-- too. What is null takes its default, whatever it was before.
-- Raises: 22004, 22023, 42501, JQ001, JQ004, JQ005, JQ006, JQ009.
-- Argument name: the schedule's name, 1 to 128 characters, no UUID.
-- Argument kind: the kind of its jobs.
-- Argument payload: the payload of its jobs.
-- Argument queue: the queue of its jobs; null means the kind's, else default.
-- Argument missed: what becomes of slots that were missed: all fire, the latest does,
-- or none; null means all for cron, latest for every.
-- Argument dedup: what becomes of a slot while a job of its key lives: enqueue, skip or
-- replace; null means enqueue for cron, skip for every.
-- Argument dedup_key: the key of its jobs; null means the name.
-- Argument priority: of its jobs; null takes the setting.
-- Argument max_attempts: of its jobs; null takes the setting.
-- Argument timeout: of its jobs; null takes the setting.
-- Argument metadata: of its jobs.
-- Argument graph: a graph as enqueue_graph() takes it, to run after each of its jobs: what
-- has
-- no after waits for that job; null means none.
-- Returns: the id of the version in force.
-- Example: select jobq.create_schedule('daily report', 'report', '0 7 * * *', time_zone => 'Europe/Berlin');
create or replace function jobq.create_schedule(
    name text,
    kind text,
    cron text default null,
    every interval default null,
    time_zone text default 'UTC',
    payload jsonb default '{}',
    queue text default null,
    from_completion boolean default false,
    gap text default 'auto',
    fold text default 'auto',
    missed text default null,
    catch_up interval default null,
    dedup text default null,
    dedup_key text default null,
    jitter interval default '0',
    starts_at timestamptz default null,
    ends_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    metadata jsonb default null,
    concurrency_key text default null,
    graph jsonb default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _given jobq_private.schedule;
begin
    _given.name := create_schedule.name;
    _given.kind := create_schedule.kind;
    _given.cron := create_schedule.cron;
    _given.every := create_schedule.every;
    _given.time_zone := create_schedule.time_zone;
    _given.payload := create_schedule.payload;
    _given.queue := create_schedule.queue;
    _given.from_completion := create_schedule.from_completion;
    _given.gap := create_schedule.gap;
    _given.fold := create_schedule.fold;
    _given.missed := create_schedule.missed;
    _given.catch_up := create_schedule.catch_up;
    _given.dedup := create_schedule.dedup;
    _given.dedup_key := create_schedule.dedup_key;
    _given.jitter := create_schedule.jitter;
    _given.starts_at := create_schedule.starts_at;
    _given.ends_at := create_schedule.ends_at;
    _given.priority := create_schedule.priority;
    _given.max_attempts := create_schedule.max_attempts;
    _given.timeout := create_schedule.timeout;
    _given.metadata := create_schedule.metadata;
    _given.concurrency_key := create_schedule.concurrency_key;
    _given.graph := create_schedule.graph;
    return (jobq_private.schedule_declare(_given, false)).schedule_id;
end
$$;

revoke all on function jobq.create_schedule from public;
grant execute on function jobq.create_schedule
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.create_schedule is
'Declares a recurring job under a name, by cron or every, and returns the id of its version: the same for the same definition, else a new one.';

-- Purpose: every version of every schedule, for people.
-- Invariant: reads only; the functions change schedules. Retired versions are history.
-- Column schedule_id: the id of this version.
-- Column name: the schedule's name.
-- Column created_at: when this version was declared.
-- Column graph: the jobs that run after each of its jobs; null for none.
create or replace view jobq.schedule as
select
    s.schedule_id, s.name, s.version, s.status, s.kind, s.queue, s.cron, s.every,
    s.from_completion, s.time_zone, s.gap, s.fold, s.missed, s.catch_up, s.dedup,
    s.dedup_key, s.concurrency_key, s.jitter, s.starts_at, s.ends_at, s.next_run_at, s.last_tick_at,
    s.payload, s.metadata, s.graph, s.priority, s.max_attempts, s.timeout, s.previous_version_id,
    s.replaced_by_id, s.awaited_job_id, s.paused_at, s.pause_reason, s.region,
    s.created_at, s.retired_at
from jobq_private.schedule as s;

revoke all on jobq.schedule from public;
grant select on jobq.schedule to jobq_reader;

comment on view jobq.schedule is
'Every version of every schedule, with its next slot and its last.';

-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version. Raises: 22004, JQ007.
-- Returns: a row of jobq.schedule.
-- Example: select version, status, next_run_at from jobq.get_schedule('weekly summary');
create or replace function jobq.get_schedule(schedule text)
returns jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        get_schedule.schedule
    );
    _shown jobq.schedule;
begin
    select v.* into _shown
    from jobq.schedule as v
    where v.schedule_id = _found.schedule_id;
    return _shown;
end
$$;

revoke all on function jobq.get_schedule from public;
grant execute on function jobq.get_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_schedule is
'Returns a schedule by its name, or one of its versions by its id.';

-- Purpose: every version of a schedule, newest first.
-- Invariant: a name's versions are one chain, also across its retirement.
-- Raises: 22004, JQ007.
-- Returns: rows of jobq.schedule.
-- Example: select version, status, cron from jobq.list_schedule_versions('weekly summary');
create or replace function jobq.list_schedule_versions(schedule text)
returns setof jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        list_schedule_versions.schedule
    );
begin
    return query
    select v.*
    from jobq.schedule as v
    where v.name = _found.name
    order by v.version desc;
end
$$;

revoke all on function jobq.list_schedule_versions from public;
grant execute on function jobq.list_schedule_versions
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_schedule_versions is
'Returns every version of a schedule, newest first.';

-- Purpose: a page of schedules, newest version first.
-- Invariant: without a status, those in force: active and paused. before is the last id
-- of the page before: ids are ordered by time. Raises: 22004, 22023.
-- Argument status: only these; null means those in force, active and paused.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument before: only versions made before this one: the last id of the page before.
-- Argument max_schedules: at most so many, 1 to 1000.
-- Returns: rows of jobq.schedule.
-- Example: select name, next_run_at from jobq.list_schedules();
create or replace function jobq.list_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50
)
returns setof jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if list_schedules.max_schedules is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_schedules');
    elsif list_schedules.max_schedules not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_schedules must be from 1 to 1000'
        );
    elsif list_schedules.status not in ('active', 'paused', 'retired') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'status must be active, paused or retired'
        );
    end if;
    return query
    select v.*
    from jobq.schedule as v
    where (
        v.status = list_schedules.status
        or (list_schedules.status is null and v.status <> 'retired')
    )
    and (list_schedules.kind is null or v.kind = list_schedules.kind)
    and (list_schedules.queue is null or v.queue = list_schedules.queue)
    and (list_schedules.before is null or v.schedule_id < list_schedules.before)
    order by v.schedule_id desc
    limit list_schedules.max_schedules;
end
$$;

revoke all on function jobq.list_schedules from public;
grant execute on function jobq.list_schedules
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_schedules is
'Returns a page of schedules, newest first: those in force, or those of one status.';

-- Purpose: stop a schedule from firing until it is resumed.
-- Invariant: jobs that it has made go on; pausing it again changes nothing.
-- Raises: 22004, JQ002, JQ007.
-- Example: select jobq.pause_schedule('weekly summary', 'nobody reads it in August');
create or replace function jobq.pause_schedule(schedule text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(pause_schedule.schedule);
begin
    if _held.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _held.name, _held.version
        ));
    end if;
    update jobq_private.schedule as s
    set
        status = 'paused', paused_at = now(),
        pause_reason = left(pause_schedule.reason, 512)
    where s.schedule_id = _held.schedule_id and s.status = 'active';
    if found then
        perform jobq_private.record_audit(
            'pause_schedule', _held.name, left(pause_schedule.reason, 512)
        );
    end if;
end
$$;

revoke all on function jobq.pause_schedule from public;
grant execute on function jobq.pause_schedule to jobq_operator;

comment on function jobq.pause_schedule is
'Stops a schedule from firing until it is resumed.';

-- Purpose: when a schedule will fire next, with what the clocks of its zone show.
-- Invariant: of one that counts from completion only the next slot is known; of one
-- that is paused, the slots that it would have if it were resumed now; of a retired
-- one, none. Jitter is not counted. Raises: 22004, 22023, JQ007.
-- Example: select * from jobq.preview_schedule('weekly summary', 3);
create or replace function jobq.preview_schedule(schedule text, ticks integer default 5)
returns table (slot_at timestamptz, local_time timestamp)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        preview_schedule.schedule
    );
begin
    perform jobq_private.preview_check(ticks, now());
    slot_at := case _found.status
        when 'active' then _found.next_run_at
        when 'paused' then jobq_private.schedule_first(_found, now())
    end;
    for _tick in 1 .. ticks loop
        exit when not coalesce(slot_at < coalesce(_found.ends_at, 'infinity'), false);
        local_time := slot_at at time zone _found.time_zone;
        return next;
        exit when _found.from_completion;
        slot_at := jobq_private.schedule_next(
            _found.parsed, _found.every, _found.time_zone, _found.gap, _found.fold,
            slot_at, slot_at
        );
    end loop;
end
$$;

revoke all on function jobq.preview_schedule from public;
grant execute on function jobq.preview_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.preview_schedule is
'Returns when a schedule will fire next, with what the clocks of its zone show.';

-- Purpose: let a paused schedule fire again.
-- Invariant: slots that came while it was paused do not fire; a fixed rate keeps its
-- beat. Resuming one that is not paused changes nothing.
-- Raises: 22004, 22023, JQ002, JQ007, JQ009.
-- Example: select jobq.resume_schedule('weekly summary');
create or replace function jobq.resume_schedule(schedule text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(resume_schedule.schedule);
begin
    if _held.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _held.name, _held.version
        ));
    elsif _held.status = 'active' then
        return;
    end if;
    perform jobq_private.cron_check(_held.time_zone, _held.gap, _held.fold);
    update jobq_private.schedule as s
    set
        status = 'active', paused_at = null, pause_reason = null,
        next_run_at = case
            when s.awaited_job_id is null
            then jobq_private.schedule_first(_held, clock_timestamp())
        end
    where s.schedule_id = _held.schedule_id;
    perform jobq_private.record_audit('resume_schedule', _held.name);
end
$$;

revoke all on function jobq.resume_schedule from public;
grant execute on function jobq.resume_schedule to jobq_operator;

comment on function jobq.resume_schedule is
'Lets a paused schedule fire again, from its next slot on.';

-- Purpose: end a schedule.
-- Invariant: it fires no more; jobs that it has made run to their end, and its history
-- stays. Its name may be declared again. Retiring it again changes nothing.
-- Raises: 22004, JQ007.
-- Example: select jobq.retire_schedule('weekly summary');
create or replace function jobq.retire_schedule(schedule text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(retire_schedule.schedule);
begin
    update jobq_private.schedule as s
    set
        status = 'retired', retired_at = now(), next_run_at = null,
        awaited_job_id = null
    where s.schedule_id = _held.schedule_id and s.status <> 'retired';
    if found then
        perform jobq_private.record_audit('retire_schedule', _held.name);
    end if;
end
$$;

revoke all on function jobq.retire_schedule from public;
grant execute on function jobq.retire_schedule to jobq_producer, jobq_operator;

comment on function jobq.retire_schedule is
'Ends a schedule; jobs that it has made run to their end.';

-- Purpose: run what a schedule runs once more, now.
-- Invariant: a job of its own, with the schedule's kind, payload, queue and options; it takes
-- no slot, so that the schedule fires as if nobody had asked, and schedule_status() does not count it. While a live job holds the
-- schedule's dedup key, that job is returned. A paused schedule can be run too. While grants by
-- queue are enforced, who has declared it must still be allowed to add what it adds, as must who asks.
-- Raises: 22004, 42501, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010. Never: INVALID_ARGUMENT,
-- JOB_NOT_FOUND, BATCH_NOT_FOUND.
-- Returns: the id of the job.
-- Example: select jobq.run_schedule('weekly summary');
create or replace function jobq.run_schedule(schedule text)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule := jobq_private.schedule_find(run_schedule.schedule);
    _jobs jobq_private.new_job[];
    _job_id uuid;
begin
    if _found.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _found.name, _found.version
        ));
    elsif row_security_active('jobq_private.job') then
        perform jobq_private.check_author(
            _found.login, _found.queue, _found.kind,
            case when _found.dedup_key is null then 'enqueue' else _found.dedup end, _found.graph
        );
    end if;
    perform jobq_private.record_audit('run_schedule', _found.name);
    _job_id := jobq.enqueue(
        _found.kind, _found.payload, _found.queue, null, _found.priority,
        _found.max_attempts, _found.timeout, null, _found.dedup_key,
        case when _found.dedup_key is not null then _found.dedup end, _found.metadata,
        concurrency_key => _found.concurrency_key
    );
    if _found.graph is not null and not exists (
        select from jobq_private.node as n where n.job_id = _job_id
    ) then
        _jobs := jobq_private.node_jobs(jobq_private.graph_nodes(_found.graph));
        perform jobq_private.check_new_jobs(_jobs);
        perform jobq_private.check_payload_schemas(_jobs);
        perform jobq_private.hang_graph(_job_id, _found.graph);
    end if;
    return _job_id;
end
$$;

revoke all on function jobq.run_schedule from public;
grant execute on function jobq.run_schedule to jobq_operator;

comment on function jobq.run_schedule is
'Runs what a schedule runs once more, now, and returns the id of the job.';

-- Purpose: how a schedule does, as one document: its last execution, what is under way,
-- and the last 24 hours.
-- Invariant: of one version; a new one starts afresh. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE when nothing has
-- ended in a day. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and what names the version.
-- Example: select jobq.schedule_status('weekly summary') ->> 'health';
create or replace function jobq.schedule_status(schedule text)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        schedule_status.schedule
    );
    _document constant json := jobq_private.schedule_document(_found);
    _last_day record;
    _pending bigint;
    _running bigint;
begin
    select s.* into _last_day
    from jobq_private.schedule_statistics(_found.schedule_id) as s;
    select count(*) filter (where j.state <> 'running'),
        count(*) filter (where j.state = 'running')
    into _pending, _running
    from jobq_private.job as j
    where j.schedule_id = _found.schedule_id;

    return json_build_object(
        'job_id', _found.schedule_id,
        'name', _found.name,
        'endpoint', _found.kind,
        'endpoint_type', _document -> 'endpoint_type',
        'trigger', 'CRON',
        'status', _document -> 'status',
        'health', case
            when _last_day.total = 0 then 'IDLE'
            when _last_day.failed * 2 >= _last_day.total then 'FAILING'
            when _last_day.failed * 10 >= _last_day.total then 'DEGRADED'
            else 'HEALTHY'
        end,
        'version', _found.version,
        'last_execution', jobq_private.schedule_last_execution(_found.schedule_id),
        'active_executions', json_build_object(
            'pending', _pending, 'running', _running, 'total', _pending + _running
        ),
        'cron', json_build_object(
            'expression', _found.cron,
            'every_ms', _document -> 'every_ms',
            'next_run_at', _document -> 'next_run_at',
            'last_tick_at', _document -> 'last_tick_at'
        ),
        'stats', json_build_object('last_24h', row_to_json(_last_day))
    );
end
$$;

revoke all on function jobq.schedule_status from public;
grant execute on function jobq.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.schedule_status is
'Returns how a schedule does as a JSON document: health, last execution, what is under way, the last 24 hours.';

-- Purpose: turn the slots that are due into jobs.
-- Invariant: each slot once, however many callers race, and none waits for another.
-- A schedule that cannot fire holds up no other: it keeps its slot, is tried again a minute
-- later, and health() says why. 40001 and 40P01 are for the caller to try again.
-- Inside: schedule_advance() takes the slots; OTHERS is caught here.
-- Raises: 22004, 22023.
-- Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
-- Argument max_schedules: at most so many schedules, and as many jobs, 1 to 10000.
-- Column job_id: the job that stands for the slot.
-- Column created: false where the overlap rule gave the slot to a job that is still
-- live.
-- Example: select * from jobq.tick();
create or replace function jobq.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp();
begin
    if tick.max_schedules is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_schedules');
    elsif tick.max_schedules not between 1 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_schedules must be from 1 to 10000'
        );
    end if;

    perform jobq_private.schedule_follow(tick.max_schedules);
    begin
        return query
        select * from jobq_private.fire_due(tick.max_schedules, _until);
        return;
    exception
        when transaction_rollback then
            raise;
        when others then
            null;
    end;
    return query
    select * from jobq_private.fire_each(tick.max_schedules, _until);
end
$$;

revoke all on function jobq.tick from public;
grant execute on function jobq.tick to jobq_worker, jobq_operator;

comment on function jobq.tick is
'Turns the slots of schedules that are due into jobs, each once however many callers race.';

-- Purpose: for how long tick() has nothing to do: until the next slot of a schedule,
-- or until one that could not fire is tried again.
-- Invariant: a duration by the database's clock; reads one entry of an index. A schedule
-- that counts from completion is not known of before its job has ended and tick() was
-- called. Raises: nothing.
-- Returns: zero or less when a slot is due, null when none is to come.
-- Example: select jobq.tick_in();
create or replace function jobq.tick_in()
returns interval
language sql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select min(s.due_at) - clock_timestamp()
    from jobq_private.due_schedule as s
$$;

revoke all on function jobq.tick_in from public;
grant execute on function jobq.tick_in to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.tick_in is
'Returns how long it is until a slot of any schedule is due, or null when none is to come.';

-- Purpose: change a schedule: a new version takes over, and the old one is retired.
-- Invariant: changes is a JSON object with parameters of create_schedule(); what it
-- does not name stays, null means the default. Giving cron takes every away, and the
-- other way round. No change, no new version.
-- Raises: 22004, 22023, 42501, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Members changes: create_schedule, but not name
-- Returns: the id of the new version; of the old one when nothing changes.
-- Example: select jobq.update_schedule('weekly summary', '{"cron": "0 10 * * MON"}');
create or replace function jobq.update_schedule(schedule text, changes jsonb)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant text[] := array[
        'kind', 'cron', 'every', 'time_zone', 'payload', 'queue', 'from_completion',
        'gap', 'fold', 'missed', 'catch_up', 'dedup', 'dedup_key', 'jitter',
        'concurrency_key',
        'starts_at', 'ends_at', 'priority', 'max_attempts', 'timeout', 'metadata',
        'graph'
    ];
    _set jobq_private.schedule;
begin
    if update_schedule.changes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'changes');
    elsif jsonb_typeof(update_schedule.changes) <> 'object'
        or update_schedule.changes - _known <> '{}'
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'changes must be an object with members among %s', _known
        ));
    end if;

    _set := jobq_private.schedule_hold(update_schedule.schedule);
    if _set.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _set.name, _set.version
        ));
    elsif update_schedule.changes ->> 'cron' is not null then
        _set.every := null;
        _set.from_completion := null;
    elsif update_schedule.changes ->> 'every' is not null then
        _set.cron := null;
    end if;
    return (jobq_private.schedule_declare(
        jsonb_populate_record(_set, update_schedule.changes), false
    )).schedule_id;
end
$$;

revoke all on function jobq.update_schedule from public;
grant execute on function jobq.update_schedule to jobq_producer, jobq_operator;

comment on function jobq.update_schedule is
'Changes what the members of a JSON object name of a schedule, and returns the id of the new version.';

commit;
