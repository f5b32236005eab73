-- Deploy jobq:workflow to pg
-- Made by sql/snapshot.py from sql/workflow/: edit that.
begin;
set local role jobq_owner;

-- Purpose: refuse an event that cannot be meant.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(check_event.event, check_event.payload) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'event and payload');
    elsif length(check_event.event) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'event must have 1 to 256 characters'
        );
    end if;
    perform jobq_private.check_results(
        '{00000000-0000-0000-0000-000000000000}', '{0}', jsonb_build_array(check_event.payload)
    );
end
$$;

revoke all on function jobq_private.check_event from public;

comment on function jobq_private.check_event is
'Refuses an event that cannot be meant.';

-- Purpose: refuse steps that cannot be meant.
-- Invariant: the arrays are parallel and name at most 1,000 steps; the names that wait_for()
-- uses are its own. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _name text;
begin
    perform jobq_private.check_results(
        check_steps.job_ids, check_steps.attempts, check_steps.results
    );
    if num_nulls(check_steps.names, check_steps.results) > 0
        or exists (select from unnest(check_steps.names) as s (name) where s.name is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(check_steps.names) <> cardinality(check_steps.job_ids)
        or cardinality(check_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    select s.name into _name
    from unnest(check_steps.names) as s (name)
    where length(s.name) not between 1 and 256 or s.name like 'event:%'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'name %s: 1 to 256 characters that do not begin with event:', left(_name, 300)
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_steps from public;

comment on function jobq_private.check_steps is
'Refuses steps that cannot be meant.';

-- Purpose: forget the steps and waits of jobs that have gone, and events past retention;
-- release those that waited for what a transaction with one snapshot has emitted.
-- Invariant: a bounded number of rows at a call. An event for which a job waits stays, and
-- so do the steps of a job that can still be redriven. Returns how many rows went.
-- Raises: nothing.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _before constant timestamptz := now() - (select g.retention from jobq_private.setting as g);
    _gone bigint;
    _rows bigint;
    _late jobq_private.late_event;
begin
    for _late in
        delete from jobq_private.late_event as l
        where l.late_event_id in (
            select e.late_event_id
            from jobq_private.late_event as e
            order by e.late_event_id
            limit prune_workflows.max_rows
            for update skip locked
        )
        returning l.*
    loop
        if exists (
            select from jobq_private.event as e
            where e.event = _late.event and e.job_id in (_late.job_id, _all)
        ) then
            perform jobq_private.release_waiters(_late.event, _late.job_id);
        end if;
    end loop;

    delete from jobq_private.event as e
    where (e.event, e.job_id) in (
        select o.event, o.job_id
        from jobq_private.event as o
        where o.emitted_at < _before
        and not exists (
            select from jobq_private.waiter as w
            where w.event = o.event and o.job_id in (w.job_id, _all)
        )
        order by o.emitted_at
        limit prune_workflows.max_rows
    );
    get diagnostics _gone = row_count;

    delete from jobq_private.waiter as w
    where (w.job_id, w.event) in (
        select o.job_id, o.event
        from jobq_private.waiter as o
        where o.since < now() - interval '1 day'
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        order by o.since
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;

    delete from jobq_private.step as s
    where s.job_id in (
        select distinct o.job_id
        from jobq_private.step as o
        where o.job_id < jobq_private.id_floor(_before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    return _gone + _rows;
end
$$;

revoke all on function jobq_private.prune_workflows from public;

comment on function jobq_private.prune_workflows is
'Forgets the steps and waits of jobs that have gone, and events past their retention.';

-- Purpose: make the jobs that wait for an event due now, and wake their queues.
-- Invariant: rows are locked in the order of their ids. Those that run, retry or have ended
-- are left alone: they look for the event when they come to it. The rows of waiters stay
-- until the jobs have looked. Returns how many jobs became due. Raises: nothing.
create or replace function jobq_private.release_waiters(event text, job_id uuid)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _waiting constant uuid[] := array(
        select w.job_id
        from jobq_private.waiter as w
        where w.event = release_waiters.event
        and release_waiters.job_id in (_all, w.job_id)
        order by w.job_id
    );
    _queues text[];
    _released bigint;
    _has_lanes boolean;
begin
    if _waiting = '{}' then
        return 0;
    end if;
    with held as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued' and j.run_at > clock_timestamp()
        order by j.job_id
        for no key update of j
    ),
    released as (
        update jobq_private.job as j
        set run_at = clock_timestamp()
        from held as h
        where j.job_id = any(_waiting) and j.job_id = h.job_id
        returning j.queue, j.lane_id
    )
    select count(*), array_agg(distinct r.queue), bool_or(r.lane_id is not null)
    into _released, _queues, _has_lanes
    from released as r;
    if _has_lanes then
        perform jobq_private.call_lanes(_waiting);
    end if;
    if _released > 0 then
        perform jobq_private.wake(_queues);
    end if;
    return _released;
end
$$;

revoke all on function jobq_private.release_waiters from public;

comment on function jobq_private.release_waiters is
'Makes the jobs that wait for an event due now.';

-- Purpose: how a wait of a job for an event has ended: what is recorded, what has come, or
-- that its time is over; null while it goes on.
-- Invariant: what is found is recorded as a step, so that every later attempt gets the
-- same. A signal for the job goes before an event of that name. Raises: nothing.
create or replace function jobq_private.settle_wait(job_id uuid, attempt integer, event text)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _end jsonb;
begin
    select s.value into _end
    from jobq_private.step as s
    where s.job_id = settle_wait.job_id and s.name = 'event:' || settle_wait.event;
    if found then
        return _end;
    end if;

    select jsonb_build_object('outcome', 'arrived', 'payload', e.payload) into _end
    from jobq_private.event as e
    where e.event = settle_wait.event and e.job_id in (settle_wait.job_id, _all)
    order by e.job_id = _all
    limit 1;
    if not found then
        select jsonb_build_object('outcome', 'timed_out', 'payload', null) into _end
        from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id
        and w.event = settle_wait.event
        and w.deadline <= clock_timestamp();
    end if;
    if _end is not null then
        insert into jobq_private.step (job_id, name, value, attempt)
        values (settle_wait.job_id, 'event:' || settle_wait.event, _end, settle_wait.attempt);
        delete from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id and w.event = settle_wait.event;
    end if;
    return _end;
end
$$;

revoke all on function jobq_private.settle_wait from public;

comment on function jobq_private.settle_wait is
'How a wait of a job for an event has ended; null while it goes on.';

-- Purpose: keep an event, and release those that wait for it.
-- Invariant: the first one stays; true for that one alone. The emitter holds E (shared)
-- until it commits, before it looks for waiters; a waiter stands in the table before it
-- tries E (exclusively, wait_for()). So one of the two always sees the other. A transaction
-- with one snapshot cannot see who began to wait since: it leaves a row for maintain().
-- Raises: nothing.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
begin
    perform pg_advisory_xact_lock_shared(_emitting, hashtext(store_event.event) & 1023);
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.late_event (event, job_id)
        values (store_event.event, store_event.job_id);
    end if;
    perform jobq_private.release_waiters(store_event.event, store_event.job_id);
    return true;
end
$$;

revoke all on function jobq_private.store_event from public;

comment on function jobq_private.store_event is
'Keeps an event unless it is known already, and releases those that wait for it.';

-- Purpose: say that something has happened, for all jobs that wait for it or will.
-- Invariant: joins the caller's transaction, and is undone with it. The first emit of an
-- event stays: true for that one, false for those that follow. An event is kept as long as
-- finished jobs are, and longer while a job waits for it.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument payload: what comes with it, for those that wait: any JSON up to max_payload_bytes
-- Returns: true for the first emit of the event
-- Example: select jobq.emit('payment:42', '{"euro": 5}');
create or replace function jobq.emit(event text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_event(emit.event, emit.payload);
    return jobq_private.store_event(
        emit.event, '00000000-0000-0000-0000-000000000000', emit.payload
    );
end
$$;

revoke all on function jobq.emit from public;
grant execute on function jobq.emit to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.emit is
'Says that an event has happened, for all jobs that wait for it or will; true for the first that says so.';

-- Purpose: what the steps of a job have come to, in their order.
-- Invariant: what wait_for() has recorded stands among them, its name beginning with
-- event:. Raises: 22004, JQ001.
-- Column name: the step's name
-- Column value: what the step has come to
-- Column attempt: the attempt that recorded it
-- Column saved_at: when
-- Example: select * from jobq.list_steps(:'running');
create or replace function jobq.list_steps(job_id uuid)
returns table (name text, value jsonb, attempt integer, saved_at timestamptz)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_steps.job_id);
    return query
    select s.name, s.value, s.attempt, s.saved_at
    from jobq_private.step as s
    where s.job_id = list_steps.job_id
    order by s.saved_at, s.name;
end
$$;

revoke all on function jobq.list_steps from public;
grant execute on function jobq.list_steps to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_steps is
'Returns what the steps of a job have come to, in their order.';

-- Purpose: record what a step of a job has come to, and return it.
-- Invariant: the first value stays: whoever saves again gets that one, and must go on with
-- it. On a handler's own connection the step commits with what the handler has written.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument name: the step's name, 1 to 256 characters, unique within the job
-- Argument value: what the step has come to: any JSON up to max_payload_bytes
-- Returns: the value that is recorded: an earlier one where there was one
-- Example: select jobq.save_step(:'running', 1, 'charge', '{"charge_id": 7}');
create or replace function jobq.save_step(
    job_id uuid, attempt integer, name text, value jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _value jsonb;
    _outcome text;
begin
    select s.value, s.outcome into _value, _outcome
    from jobq.save_steps(
        array[save_step.job_id], array[save_step.attempt], array[save_step.name],
        jsonb_build_array(save_step.value)
    ) as s;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(save_step.job_id, save_step.attempt);
    end if;
    return _value;
end
$$;

revoke all on function jobq.save_step from public;
grant execute on function jobq.save_step to jobq_worker;

comment on function jobq.save_step is
'Records what a step of a job has come to, and returns what is recorded: the first value stays.';

-- Purpose: record what steps have come to, many with one call and one commit.
-- Invariant: only the attempt that holds the job records, under the lock of its row; a
-- value that is recorded stays, whoever comes later. outcome is 'saved', 'known' for a
-- step that has a value already, which comes back, or 'lost' for an attempt that no longer
-- holds its job. Rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument names: the steps' names, parallel to job_ids, 1 to 256 characters each
-- Argument results: what the steps have come to, a JSON array parallel to job_ids
-- Column name: the step's name
-- Column value: what is recorded; null where the attempt had lost its job
-- Column outcome: `saved`, `known` or `lost`
-- Example: select * from jobq.save_steps(array[:'running']::uuid[], '{1}', '{ship}', '[true]');
create or replace function jobq.save_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns table (job_id uuid, name text, value jsonb, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    perform jobq_private.check_steps(
        save_steps.job_ids, save_steps.attempts, save_steps.names, save_steps.results
    );
    return query
    with given as materialized (
        select
            g.job_id, g.attempt, g.name, g.value, g.n,
            row_number() over (
                partition by g.job_id, g.attempt, g.name order by g.n
            ) as place
        from rows from (
            unnest(save_steps.job_ids, save_steps.attempts, save_steps.names),
            jsonb_array_elements(save_steps.results)
        ) with ordinality as g (job_id, attempt, name, value, n)
    ),
    held as materialized (
        select j.job_id, j.attempt
        from jobq_private.job as j
        where j.job_id = any(save_steps.job_ids)
        and j.lease_expires_at is not null
        order by j.job_id
        for no key update of j
    ),
    saved as (
        insert into jobq_private.step as s (job_id, name, value, attempt)
        select distinct on (g.job_id, g.name) g.job_id, g.name, g.value, g.attempt
        from given as g
        join held as h on h.job_id = g.job_id and h.attempt = g.attempt
        order by g.job_id, g.name, g.n
        on conflict on constraint step_pkey do nothing
        returning s.job_id, s.name, s.value
    )
    select
        g.job_id, g.name, case when h.job_id is not null then coalesce(s.value, k.value) end,
        case
            when h.job_id is null then 'lost'
            when s.job_id is not null and g.place = 1 then 'saved'
            else 'known'
        end
    from given as g
    left join held as h on h.job_id = g.job_id and h.attempt = g.attempt
    left join saved as s on s.job_id = g.job_id and s.name = g.name
    left join jobq_private.step as k
        on h.job_id is not null and k.job_id = g.job_id and k.name = g.name
    order by g.n;
end
$$;

revoke all on function jobq.save_steps from public;
grant execute on function jobq.save_steps to jobq_worker;

comment on function jobq.save_steps is
'Records the values of many steps, of one job or of many, and tells for each whether it was new.';

-- Purpose: tell one job something that it waits for or will: an approval, an answer.
-- Invariant: an event that only this job sees, under the name that it waits for; the first
-- one stays. Joins the caller's transaction. A job that has ended is told nothing.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name that the job waits for as an event, 1 to 256 characters
-- Argument payload: what comes with it: any JSON up to max_payload_bytes
-- Returns: true for the first signal of the name
-- Example: select jobq.signal(:'waiting', 'approval', '{"by": "ada"}');
create or replace function jobq.signal(job_id uuid, name text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(signal.job_id);
begin
    perform jobq_private.check_event(signal.name, signal.payload);
    if _job.finished_at is not null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s: it hears no signal', signal.job_id, _job.state
        ));
    end if;
    return jobq_private.store_event(signal.name, signal.job_id, signal.payload);
end
$$;

revoke all on function jobq.signal from public;
grant execute on function jobq.signal to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.signal is
'Tells one job something that it waits for or will; true for the first of this name.';

-- Purpose: a handler waits for an event, or for a signal to its job of that name.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting': then the job
-- has been given back, its attempt not counted, and the handler must end; the job is due
-- again when the event comes, at the latest after timeout, which counts from the first
-- call. The attempt that then runs calls again and is told. While an emit is under way that
-- could miss it, the job looks again after a quarter of a second. A transaction with one
-- snapshot cannot see what was emitted since: it leaves a row for maintain(), which looks.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument timeout: how long at most, from the first call; up to 36500 days; null means that
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: what came with the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_event(wait_for.event, 'null');
    if wait_for.timeout < interval '0' or wait_for.timeout > interval '36500 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'timeout must be between 0 and 36500 days'
        );
    end if;
    perform from jobq_private.job as j
    where j.job_id = wait_for.job_id
    and j.attempt = wait_for.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(wait_for.job_id, wait_for.attempt);
    end if;

    _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    if _end is null then
        insert into jobq_private.waiter as w (job_id, event, deadline)
        values (
            wait_for.job_id, wait_for.event,
            clock_timestamp() + coalesce(wait_for.timeout, interval '36500 days')
        )
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline into _due;
        if current_setting('transaction_isolation') <> 'read committed' then
            insert into jobq_private.late_event (event, job_id)
            values (wait_for.event, wait_for.job_id);
        end if;
        if not pg_try_advisory_xact_lock(_emitting, hashtext(wait_for.event) & 1023) then
            _due := least(_due, clock_timestamp() + interval '0.25 s');
        end if;
        _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    end if;
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
    if _end is null then
        perform jobq.release(wait_for.job_id, wait_for.attempt, _due);
    end if;
end
$$;

revoke all on function jobq.wait_for from public;
grant execute on function jobq.wait_for to jobq_worker;

comment on function jobq.wait_for is
'Waits for an event or a signal: what has come, or that the job has been given back until it comes.';

commit;
