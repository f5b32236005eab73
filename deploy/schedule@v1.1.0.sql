-- Deploy jobq:schedule to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop routine if exists jobq_private.schedule_follow;

-- Purpose: the slots of a schedule in a past span that have no job.
-- Invariant: excludes slots that tick() has yet to take; it takes none of a pause. A job of any
-- version of the schedule counts, live or archived. Raises: 22023.
create or replace function jobq_private.backfill_slots(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer
)
returns timestamptz[] language plpgsql stable as $$
declare
    _until constant timestamptz := least(
        backfill_slots.until, schedule.ends_at,
        case when schedule.status = 'active' then schedule.next_run_at end
    );
    _anchor constant timestamptz := coalesce(
        schedule.starts_at, schedule.next_run_at, schedule.last_tick_at, backfill_slots.since
    );
    _slot timestamptz := backfill_slots.since - interval '1 us';
    _slots timestamptz[] := '{}'::timestamptz[];
begin
    loop
        _slot := jobq_private.schedule_next(schedule.parsed, schedule.every, _anchor, _slot);
        exit when not coalesce(_slot < _until, false);
        perform jobq_private.check_argument(case
            when cardinality(_slots) = max_slots
            then format('the span has more than %s slots (max_slots)', max_slots)
        end);
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

-- Purpose: the first local time at or after a given one that matches a cron expression;
-- null if there is none.
-- Invariant: pure; tries each day of the months in the expression. A weekday on a day
-- of the year can be up to forty years away (29 February across 2100); all years of a
-- list are tried. No SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_next_local(cron jobq_private.cron, start timestamp)
returns timestamp language plpgsql immutable as $$
declare
    _date date := start;
    _from time := start;
    _time time;
    _year integer := pg_catalog.date_part('year', _date);
    _next_month date;
    -- Clients read times up to the year 9999, in any zone.
    _last_year constant integer := case
        when cron.years is null then least(_year + 40, 9998) else 2199
    end;
begin
    while _year <= _last_year loop
        -- of a timestamp: that of a date would depend on the session's time zone
        _next_month := pg_catalog.date_trunc('month', _date::timestamp) + interval '1 month';
        if _year <> all(cron.years) then
            _date := pg_catalog.make_date(_year + 1, 1, 1);
        elsif (cron.months >> pg_catalog.date_part('month', _date)::integer) & 1 = 0 then
            _date := _next_month;
        else
            while _date < _next_month loop
                if jobq_private.cron_has_day(
                    cron, _date, pg_catalog.date_part('day', _next_month - 1)::integer
                ) then
                    _time := jobq_private.cron_time(cron, _from);
                    if _time is not null then
                        return _date + _time;
                    end if;
                end if;
                _date := _date + 1;
                _from := '00:00';
            end loop;
        end if;
        _from := '00:00';
        _year := pg_catalog.date_part('year', _date);
    end loop;
    return null;
end
$$;

-- Purpose: take the due slots, and move each schedule to its next slot.
-- Invariant: SKIP LOCKED, so no caller waits for another. next_run_at is compared and set in the
-- transaction that stores the jobs, so each slot fires once. One statement locks and the next one
-- reads, so its snapshot includes what others have committed. Earliest first; schedules with
-- missed slots share the rest of max_schedules. Pauses a schedule whose zone no longer exists; a
-- failed one waits for its retry. With only_id, takes no other schedule.
create or replace function jobq_private.schedule_advance(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns jobq_private.new_job[] language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _due uuid[];
    _jobs jobq_private.new_job[];
begin
    _due := array(
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= schedule_advance.until
        and (schedule_advance.only_id is null or s.schedule_id = schedule_advance.only_id)
        order by s.due_at
        limit schedule_advance.max_schedules
        for no key update skip locked
    );
    if _due = '{}' then
        return null;
    end if;
    with planned as materialized (
        select s.schedule_id, p.*
        from jobq_private.schedule as s
        cross join lateral jobq_private.schedule_slots(
            s.parsed, s.every, case when s.from_completion then 'all' else s.missed end, s.catch_up,
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
        where s.schedule_id = p.schedule_id
        returning s as schedule, s.schedule_id, s.jitter, s.dedup, p.slots
    )
    select array_agg(jobq_private.schedule_job(
        f.schedule, f.ordinal, f.slot_at + random() * f.jitter, f.slot_at, f.dedup
    )) into _jobs
    from (
        select a.*, u.slot_at,
            row_number() over (order by u.slot_at, a.schedule_id)::integer as ordinal
        from advanced as a
        cross join lateral unnest(a.slots) as u (slot_at)
    ) as f;
    return _jobs;
end
$$;

-- Purpose: the first slot of a schedule strictly after an instant, within its bounds.
-- Invariant: the slot is also after the last one, so none repeats if the clock was set back. An
-- interval counts from starts_at, else from its previous next slot, else from the instant.
-- Raises: 22023 for a zone that the server no longer has.
create or replace function jobq_private.schedule_first(
    schedule jobq_private.schedule, after timestamptz
)
returns timestamptz language plpgsql stable as $$
declare
    _after constant timestamptz := greatest(
        schedule_first.after, schedule.starts_at - interval '1 us', schedule.last_tick_at
    );
    _first constant timestamptz := jobq_private.schedule_next(
        schedule.parsed, schedule.every,
        coalesce(schedule.starts_at, schedule.next_run_at, _after), _after
    );
begin
    return case when _first < coalesce(schedule.ends_at, 'infinity') then _first end;
end
$$;

-- Purpose: set the next slot of from_completion schedules whose last job has ended. only_id
-- limits it to one schedule.
-- Invariant: one statement locks and the next one reads, so its snapshot includes what
-- others have committed: another call may have stored the next job meanwhile. SKIP LOCKED.
-- A job in neither table ended long ago.
create or replace function jobq_private.schedule_follow(
    max_schedules integer, only_id uuid default null
)
returns void language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _ids constant uuid[] := array(
        select s.schedule_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and (schedule_follow.only_id is null or s.schedule_id = schedule_follow.only_id)
        and not exists (select from jobq_private.job as j where j.job_id = s.awaited_job_id)
        limit schedule_follow.max_schedules
        for no key update skip locked
    );
begin
    with ended as materialized (
        select s.schedule_id, greatest(s.last_tick_at, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = s.awaited_job_id
            and a.finished_at >= jobq_private.id_time(s.awaited_job_id)
        ), now())) + s.every as next_run_at
        from jobq_private.schedule as s
        where s.schedule_id = any(_ids) and s.awaited_job_id is not null
        and not exists (select from jobq_private.job as j where j.job_id = s.awaited_job_id)
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when e.next_run_at < coalesce(s.ends_at, 'infinity') then e.next_run_at
        end
    from ended as e
    where s.schedule_id = e.schedule_id;
end
$$;

-- Purpose: a job of a schedule; with slot_at the one of that slot, which is stored once.
create or replace function jobq_private.schedule_job(
    schedule jobq_private.schedule, ordinal integer, run_at timestamptz, slot_at timestamptz,
    dedup text
)
returns jobq_private.new_job language plpgsql stable as $$
declare
    _job jobq_private.new_job;
begin
    _job.ordinal := schedule_job.ordinal;
    _job.kind := schedule.kind;
    _job.payload := schedule.payload;
    _job.queue := schedule.queue;
    _job.run_at := schedule_job.run_at;
    _job.priority := schedule.priority;
    _job.max_attempts := schedule.max_attempts;
    _job.timeout := schedule.timeout;
    _job.dedup_key := case when schedule_job.dedup <> 'enqueue' then schedule.dedup_key end;
    _job.dedup := schedule_job.dedup;
    _job.metadata := schedule.metadata;
    _job.concurrency_key := schedule.concurrency_key;
    if slot_at is not null then
        _job.schedule_id := schedule.schedule_id;
        _job.slot_at := schedule_job.slot_at;
        _job.idempotency_key := format(
            'job_%s_%s', schedule.schedule_id, floor(extract(epoch from slot_at) * 1000)
        );
    end if;
    return _job;
end
$$;

-- Purpose: Creates the jobs of past slots of a schedule that did not fire, each once.
-- Invariant: each slot once, even beside tick() and other calls, because the schedule's row is
-- locked. A slot is known only by its job, so a slot older than the retention counts as not
-- fired. The overlap rule does not apply: each slot has its job, due at once, in the order of the
-- slots. All or none; refused if the span has too many slots. Works for paused schedules, and for
-- spans before the start. Raises: 22004, 22023, 42501, JQ002, JQ004, JQ007.
-- Argument since: slots at or after this instant.
-- Argument until: slots before this instant, which is not later than now.
-- Argument max_slots: maximum number of slots, 1 to 10000; a span with more is refused.
-- Column job_id: the created job; null in a dry run.
-- Example: select * from jobq.backfill_schedule('weekly summary', now() - interval '30 days', now(), dry_run => true);
create or replace function jobq.backfill_schedule(
    schedule text, since timestamptz, until timestamptz, max_slots integer default 1000,
    dry_run boolean default false, reason text default null
)
returns table (slot_at timestamptz, job_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_hold(schedule);
    _slots timestamptz[];
begin
    perform jobq_private.check_given(
        'since, until, max_slots and dry_run', num_nulls(since, until, max_slots, dry_run)
    );
    perform jobq_private.check_argument(case
        when not since < until then 'since must be before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'the span must be between 1900 and now'
        when max_slots not between 1 and 10000 then 'max_slots must be from 1 to 10000'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when _found.from_completion then 'a schedule with from_completion has no past slots'
    end);
    _slots := jobq_private.backfill_slots(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots
    );
    if backfill_schedule.dry_run then
        return query select u, null::uuid from unnest(_slots) as u;
        return;
    end if;
    return query select f.slot_at, f.job_id
    from jobq_private.schedule_store(array(
        select jobq_private.schedule_job(_found, u.n::integer, now(), u.at, 'enqueue')
        from unnest(_slots) with ordinality as u (at, n)
    )) as f;
    perform jobq_private.record_audit(
        'backfill_schedule', _found.name,
        concat_ws(': ', cardinality(_slots) || ' slots', backfill_schedule.reason)
    );
end
$$;
grant execute on function jobq.backfill_schedule to jobq_operator;

comment on function jobq.backfill_schedule is 'Creates the jobs of past slots of a schedule that did not fire, each once.';

-- Purpose: Returns the next times of a schedule, also in local time.
-- Invariant: for from_completion, only the next slot is known; for a paused schedule,
-- the slots as if it were resumed now; for a retired one, none. Jitter is not included.
-- Raises: 22004, 22023, JQ007.
-- Example: select * from jobq_internal.preview_schedule('weekly summary', 3);
create or replace function jobq_internal.preview_schedule(schedule text, ticks integer default 5)
returns table (slot_at timestamptz, local_time timestamp) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        preview_schedule.schedule
    );
begin
    perform jobq_private.check_count('ticks', ticks, 1, 1000);
    slot_at := case _found.status
        when 'active' then _found.next_run_at
        when 'paused' then jobq_private.schedule_first(_found, now())
    end;
    for _tick in 1 .. ticks loop
        exit when not coalesce(slot_at < coalesce(_found.ends_at, '9999-01-01 UTC'), false);
        local_time := slot_at at time zone _found.time_zone;
        return next;
        exit when _found.from_completion;
        slot_at := jobq_private.schedule_next(_found.parsed, _found.every, slot_at, slot_at);
    end loop;
end
$$;
grant execute on function jobq_internal.preview_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.preview_schedule is 'Returns the next times of a schedule, also in local time.';

-- Purpose: Resumes a paused schedule from its next slot.
-- Invariant: slots during the pause do not fire; an interval keeps its phase. Resuming a schedule
-- that is not paused changes nothing. Raises: 22004, 22023, JQ002, JQ007, JQ009.
-- Example: select jobq.resume_schedule('weekly summary');
create or replace function jobq.resume_schedule(schedule text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(resume_schedule.schedule);
begin
    if _held.status = 'active' then
        return;
    end if;
    perform jobq_private.cron_check(_held.time_zone, _held.gap, _held.fold);
    update jobq_private.schedule as s
    set status = 'active', paused_at = null, pause_reason = null
    where s.schedule_id = _held.schedule_id;
    -- its job may have ended during the pause
    perform jobq_private.schedule_follow(1, _held.schedule_id);
    update jobq_private.schedule as s
    set next_run_at = jobq_private.schedule_first(s, clock_timestamp())
    where s.schedule_id = _held.schedule_id and s.awaited_job_id is null
    -- a slot that counts from the end of a job stays
    and (s.from_completion is not true or s.next_run_at <= clock_timestamp());
    perform jobq_private.notify('jobq', '*');
    perform jobq_private.record_audit('resume_schedule', _held.name);
end
$$;
grant execute on function jobq.resume_schedule to jobq_operator;

comment on function jobq.resume_schedule is 'Resumes a paused schedule from its next slot.';

-- Purpose: Runs a schedule once now, and returns the id of the job.
-- Invariant: the job has the schedule's kind, payload, queue and options, but no slot: the
-- schedule fires as usual, and schedule_status() does not count the job. If a live job has the
-- schedule's dedup key, returns that job, and adds no graph. Works for paused schedules. While
-- grants by queue are enforced, both the caller and the author of the schedule must be allowed to
-- add its jobs. Raises: 22004, 42501, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010. Never:
-- INVALID_ARGUMENT, JOB_NOT_FOUND, BATCH_NOT_FOUND.
-- Returns: the id of the job.
-- Example: select jobq.run_schedule('weekly summary');
create or replace function jobq.run_schedule(schedule text)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _found jobq_private.schedule := jobq_private.schedule_find(run_schedule.schedule);
    _job_id uuid;
    _is_new boolean;
begin
    perform jobq_private.check_problem('SCHEDULE_RETIRED', case
        when _found.status = 'retired'
        then format('schedule %s, version %s', _found.name, _found.version)
    end);
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(
            _found.login, _found.queue, _found.kind, _found.dedup, _found.graph
        );
    end if;
    perform jobq_private.record_audit('run_schedule', _found.name);
    select s.ids[1], s.created[1] into _job_id, _is_new
    from jobq_private.store_jobs(array[jobq_private.schedule_job(
        _found, 1, null, null, _found.dedup
    )]) as s;
    if _found.graph is not null and _is_new then
        perform jobq_private.attach_graph(_job_id, _found.graph, false);
    end if;
    return _job_id;
end
$$;
grant execute on function jobq.run_schedule to jobq_operator;

comment on function jobq.run_schedule is 'Runs a schedule once now, and returns the id of the job.';

commit;
