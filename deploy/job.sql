-- Deploy jobq:job to pg
-- Made by sql/snapshot.py from sql/job/: edit that.
begin;
set local role jobq_owner;

-- Purpose: the least UUID of version 7 that can have been made at a moment or later.
-- Invariant: the inverse of id_time(), to the millisecond. Raises: nothing.
create or replace function jobq_private.id_floor(moment timestamptz)
returns uuid
language sql
immutable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (lpad(to_hex(
        greatest(0, least(281474976710655, floor(extract(epoch from moment) * 1000)))::bigint
    ), 12, '0') || repeat('0', 20))::uuid
$$;

revoke all on function jobq_private.id_floor from public;

comment on function jobq_private.id_floor is
'The least UUID of version 7 that can have been made at a moment or later.';

-- Purpose: every job, live and archived, as one relation that can be written to.
-- Invariant: inserts and updates go through the functions of the same meaning; see
-- job_insert and job_update. FOR UPDATE would lock nothing below a UNION and say nothing;
-- the outer join, which PostgreSQL takes out of every other plan, has it refused (0A000):
-- claim() is what takes jobs. attempts counts what counts against max_attempts.
-- Column attempts: how many attempts count against max_attempts.
-- Column result: what the attempt that succeeded returned.
-- Column worker: who runs it, or ran it last.
-- Column updated_at: when its state last changed.
-- Column expires_at: no attempt begins after this instant; null for never.
-- Column schedule_id: the schedule's version that made it, if one did.
create or replace view jobq.job as
select u.*
from (
    select
        j.job_id, j.kind, j.queue, j.state, j.previous_state, j.payload,
        null::jsonb as result,
        j.run_at::timestamptz, j.priority, j.attempt, j.attempt - j.uncounted as attempts, j.max_attempts,
        j.timeout, j.lease, j.worker, j.claimed_at, j.heartbeat_at, j.lease_expires_at,
        j.cancel_requested_at, j.cancel_reason, j.idempotency_key, j.dedup_key,
        j.concurrency_key,
        j.last_error_code, j.last_error::text as last_error, j.metadata, j.progress,
        j.schedule_id, j.slot_at, j.region, j.created_at, null::timestamptz as finished_at,
        j.delivery_version, j.expires_at, j.batch_id,
        case
            when j.lease_expires_at is not null then j.claimed_at
            else coalesce(j.waits_since, j.created_at)
        end as updated_at
    from jobq_private.job as j
    union all
    select
        a.job_id, a.kind, a.queue, a.state, a.previous_state, a.payload, a.result,
        a.run_at::timestamptz, a.priority, a.attempt, a.attempt - a.uncounted as attempts, a.max_attempts,
        a.timeout, a.lease, a.worker, a.claimed_at, a.heartbeat_at, null,
        a.cancel_requested_at, a.cancel_reason, a.idempotency_key, a.dedup_key,
        a.concurrency_key,
        a.last_error_code, a.last_error::text, a.metadata, a.progress, a.schedule_id, a.slot_at,
        a.region, a.created_at, a.finished_at, a.delivery_version,
        a.expires_at, a.batch_id, a.finished_at
    from jobq_private.job_archive as a
) as u
left join jobq_private.schedule as s on s.schedule_id = u.schedule_id;

revoke all on jobq.job from public;
grant select on jobq.job to jobq_reader;
grant select, update on jobq.job to jobq_operator;
grant select, insert on jobq.job to jobq_producer;

comment on view jobq.job is
'Every job, live and archived. Insert enqueues; updating state performs the transition. FOR UPDATE and FOR SHARE are refused (0A000, "nullable side of an outer join"): what takes jobs is claim(), or claim_job() by id.';

-- Purpose: refuse a row of the archive whose job has not ended.
-- Invariant: queued stands in the archive only while a redrive takes the job out. The
-- WHEN clause keeps the function away from every job that succeeds: a row without a lane can be
-- no other, as an index sees to. It is short, since PostgreSQL reads its text again for every
-- statement. After the insert: a trigger before it would have the bounds of the partition checked.
-- Raises: JQ002.
create or replace function jobq_private.refuse_unfinished()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        return null;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: no job is archived as %s', new.job_id, new.state
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_unfinished from public;

comment on function jobq_private.refuse_unfinished is
'Refuses a row of the archive whose job has not ended.';

create or replace trigger archive_birth
after insert on jobq_private.job_archive
for each row when (new.lane is not null)
execute function jobq_private.refuse_unfinished();

-- Purpose: a finished job is history: nothing of it changes, but dead and cancelled jobs
-- may go back to queued, and one that others need is kept longer.
-- Invariant: a change of state stamps previous_state and its lane, and the foreign key
-- decides; the rest of the row stays as it is. Raises: JQ002.
create or replace function jobq_private.guard_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq_private.job_archive := new;
begin
    _kept.state := old.state;
    _kept.prune_at := old.prune_at;
    if _kept is distinct from old or (new.state = old.state) = (
        new.prune_at is not distinct from old.prune_at
    ) then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s is finished: %s', old.job_id, old.state
        ));
    end if;
    if new.state = old.state then
        return new;
    end if;
    new.previous_state := old.state;
    new.lane := (pg_backend_pid() & 1023)::smallint;
    return new;
end
$$;

revoke all on function jobq_private.guard_archive from public;

comment on function jobq_private.guard_archive is
'Refuses a change of a finished job, but for its redrive.';

create or replace trigger archive_immutable
before update on jobq_private.job_archive
for each row execute function jobq_private.guard_archive();

-- Purpose: move live jobs into the archive in a final state, as one statement; delete those
-- that succeed and leave no trace.
-- Invariant: only the attempt that holds the lease moves a running job, and only to be
-- cancelled does a job move that waits; the archive's foreign key refuses an illegal change,
-- and its index by lane what is no success where the lane is null. The state is deliberately not
-- compared with 'running', and the ids stand as an array, so that only the primary key can
-- serve the delete, whatever the statistics say, in the order of ids that every batch uses. Where
-- all have one attempt, as mostly, that is compared, and no list of pairs is made; results are
-- found by id and attempt. Starting the statement costs more than one job does: so what follows from an
-- end is made where the row is at hand, and what counts the jobs carries two columns of them (offset 0).
-- What another transaction holds is waited for, or passed over where that is asked for.
-- The time is read by the statement that has locked the archive (ROW EXCLUSIVE), not before it:
-- listen_events() finds by that lock who may still add an earlier end.
-- Where none leaves a trace, the session's next successes are tried by drop_jobs() first.
-- Clients that wait for these jobs are told, also of those that did not move: they look.
-- Returns the positions, from 1, of those that did not move; null for none. Raises: 23503 for an
-- illegal change.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb, skip_held boolean
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _attempt constant integer := case
        when attempts[1] = all(attempts) then attempts[1]
    end;
    _ending constant integer := array_position(
        '{succeeded,dead,cancelled}', archive_jobs.state
    );
    _results jsonb;
    _moved integer;
    _finished_at timestamptz;
    _endings jobq_private.ending[];
    _gone uuid[];
    _gone_attempts integer[];
begin
    if archive_jobs.results is not null then
        if cardinality(archive_jobs.job_ids) = 1
            and num_nulls(archive_jobs.job_ids[1], archive_jobs.attempts[1]) = 0
        then
            _results := jsonb_build_object(
                concat(archive_jobs.job_ids[1], archive_jobs.attempts[1]),
                archive_jobs.results -> 0
            );
        else
            _results := (
                select jsonb_object_agg(r.job_id::text || r.attempt, r.result)
                from rows from (
                    unnest(archive_jobs.job_ids, archive_jobs.attempts),
                    jsonb_array_elements(archive_jobs.results)
                ) as r (job_id, attempt, result)
                where r.job_id::text || r.attempt is not null
            );
        end if;
    end if;
    with ended as (
        delete from jobq_private.job as j
        where j.job_id = any(archive_jobs.job_ids)
        and case
            when _attempt is not null then j.attempt = _attempt
            else (j.job_id, j.attempt) in (
                select u.* from unnest(archive_jobs.job_ids, archive_jobs.attempts) as u
            )
        end
        and (
            j.lease_expires_at is not null
            or archive_jobs.state in (j.state, 'cancelled')
        )
        and (
            not archive_jobs.skip_held
            or j.xmax = '0'
            or j.xmax = j.xmin
            or jobq_private.is_free(j.job_id)
        )
        returning
            case
                when num_nonnulls(j.lane_id, j.place, j.batch_id) > 0 or j.is_awaited
                    or j.keep[_ending] = '0'
                then row(
                    j.queue, j.job_id, j.attempt, j.batch_id, j.is_awaited, j.lane_id, j.kind,
                    j.concurrency_key, j.lane_id is not null or j.place is not null,
                    j.keep[_ending] = '0' and not j.is_awaited and j.batch_id is null
                )::jobq_private.ending
            end as ending,
            (select clock_timestamp()) as at,
            j.*
    ),
    stored as (
        insert into jobq_private.job_archive (
            state, previous_state, lane, finished_at, result, prune_at,
            -- columns of jobq_private.job but lease_expires_at, place, waits_since:
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at,
            slot_at, expires_at, lease, timeout, schedule_id, attempt, uncounted,
            max_attempts, expiries, delivery_version, priority, is_awaited, region, queue,
            kind, lane_id, concurrency_key, batch_id, worker, idempotency_key, dedup_key,
            dedup, cancel_reason, last_error_code, last_error, last_error_details, keep,
            metadata, progress, payload
            -- end
        )
        select
            archive_jobs.state,
            case when g.state = archive_jobs.state then g.previous_state else g.state end,
            case when archive_jobs.state <> 'succeeded' then pg_backend_pid() & 1023 end,
            g.at,
            case
                when _results is not null
                then nullif(_results -> (g.job_id::text || g.attempt), 'null')
            end,
            g.at + g.keep[_ending],
            -- the same of g:
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at,
            g.cancel_requested_at, g.slot_at, g.expires_at, g.lease, g.timeout,
            g.schedule_id, g.attempt, g.uncounted, g.max_attempts, g.expiries,
            g.delivery_version, g.priority, g.is_awaited, g.region, g.queue, g.kind,
            g.lane_id, g.concurrency_key, g.batch_id, g.worker, g.idempotency_key,
            g.dedup_key, g.dedup, g.cancel_reason, g.last_error_code, g.last_error,
            g.last_error_details, g.keep, g.metadata, g.progress, g.payload
            -- end
        from ended as g
        where (g.ending).leaves_nothing is not true
    )
    select count(*), max(g.at), array_agg(g.ending) filter (where not g.ending is null)
    into _moved, _finished_at, _endings
    from (select e.at, e.ending from ended as e offset 0) as g;
    if _endings is not null then
        select r.gone, r.gone_attempts into _gone, _gone_attempts
        from jobq_private.follow_endings(_endings) as r;
        if cardinality(_gone) = _moved then
            perform set_config('jobq.drops', 'on', false);
        end if;
    end if;
    if jobq_private.is_held('awaiting', 0) then
        perform jobq_private.tell_ended(archive_jobs.job_ids);
    end if;
    if _moved = cardinality(archive_jobs.job_ids) then
        return null;
    end if;
    return nullif(
        array(
            select s.n
            from unnest(archive_jobs.job_ids, archive_jobs.attempts)
                with ordinality as s (job_id, attempt, n)
            where not exists (
                select from jobq_private.job_archive as a
                where a.job_id = s.job_id
                and a.attempt = s.attempt
                and a.finished_at = _finished_at
            )
            and (s.job_id, s.attempt) not in (select g.* from unnest(_gone, _gone_attempts) as g)
        ),
        '{}'
    );
end
$$;

revoke all on function jobq_private.archive_jobs from public;

comment on function jobq_private.archive_jobs is
'Moves live jobs into the archive in a final state.';

-- Purpose: a job that has gone back among the live ones leaves the archive.
-- Invariant: see archive_redrive. Raises: nothing.
create or replace function jobq_private.leave_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from jobq_private.job_archive as a
    where a.job_id = new.job_id and a.finished_at = new.finished_at;
    return null;
end
$$;

revoke all on function jobq_private.leave_archive from public;

comment on function jobq_private.leave_archive is
'Takes a job that was redriven out of the archive.';

create or replace trigger archive_leave
after update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.leave_archive();

-- Purpose: a finished job that is set to queued or blocked goes back among the live ones, blocked if it
-- has to wait again; it stays as it is where its idempotency key or dedup key stands for another job
-- by now.
-- Invariant: the attempt goes on counting, as a fencing token must; what was spent so far
-- no longer counts against max_attempts, and it does not expire again. Before the update, so
-- that it can be dropped; after it, archive_leave takes the row out. Nobody looks whether others
-- wait for it: it counts as awaited. Raises: nothing.
create or replace function jobq_private.redrive_archived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.idempotency_key is not null and new.job_id <> jobq_private.hold_key(
        new.kind, new.queue, new.idempotency_key, new.job_id
    ) then
        return null;
    end if;
    if jobq_private.wait_again(array[new.job_id]) <> '{}' then
        new.state := 'blocked';
    end if;
    insert into jobq_private.job (
        run_at, uncounted, state, previous_state, is_awaited, waits_since, lane,
        last_error_code, last_error,
        -- columns of jobq_private.job but expires_at, expiries, claimed_at, heartbeat_at,
        -- lease_expires_at, cancel_requested_at, cancel_reason, worker, place, progress:
        job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts,
        delivery_version, priority, region, queue, kind, lane_id, concurrency_key,
        batch_id, idempotency_key, dedup_key, dedup, last_error_details, keep, metadata,
        payload
        -- end
    )
    values (
        now(), new.attempt, new.state, new.previous_state, true, clock_timestamp(), new.lane,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error_code end,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error end,
        -- the same of new:
        new.job_id, new.created_at, new.slot_at, new.lease, new.timeout,
        new.schedule_id, new.attempt, new.max_attempts, new.delivery_version,
        new.priority, new.region, new.queue, new.kind, new.lane_id, new.concurrency_key,
        new.batch_id, new.idempotency_key, new.dedup_key, new.dedup,
        new.last_error_details, new.keep, new.metadata, new.payload
        -- end
    )
    on conflict (kind, dedup_key, (case when dedup is null then job_id end))
    where dedup_key is not null do nothing;
    if not found then
        insert into jobq_private.look (about, id) values ('parent', new.job_id);
        return null;
    end if;
    if new.lane_id is not null then
        update jobq_private.gate as g
        set held_until = '-infinity', hold_reason = null
        where g.gate_id = new.lane_id
        and g.held_until = 'infinity'
        and g.hold_reason = format('job %s is dead', new.job_id);
        perform jobq_private.call_lane(
            new.lane_id, new.queue, new.concurrency_key, new.priority, now()
        );
    end if;
    if new.state = 'blocked' then
        perform jobq_private.look_again(array[new.job_id], array[new.job_id]);
    end if;
    if new.last_error_code = 'EVENT_TIMEOUT' then
        perform jobq_private.forget_timeouts(array[new.job_id]);
    end if;
    perform jobq_private.wake(array[new.queue]);
    return new;
end
$$;

revoke all on function jobq_private.redrive_archived from public;

comment on function jobq_private.redrive_archived is
'Puts a finished job that is set to queued back among the live ones.';

create or replace trigger archive_redrive
before update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.redrive_archived();

-- Purpose: whether options of a new job are surely acceptable: new_job_problem() says the same of them,
-- beside any payload that is_sound() passes, and looks closer at others.
-- Invariant: metadata of at most 308 bytes holds no huge number, and is too short to be too deep. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.are_usual(
    run_at timestamptz, priority integer, max_attempts integer, timeout interval, metadata jsonb
)
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select coalesce(run_at, pg_catalog.now()) between '0002-01-01' and '9998-01-01'
    and coalesce(priority, 0) between -32768 and 32767
    and coalesce(max_attempts, 1) between 1 and 10000
    and coalesce(timeout, '1 s') between '1 ms' and '365 days'
    and pg_catalog.jsonb_typeof(coalesce(metadata, '{}')) = 'object'
    and pg_catalog.pg_column_size(coalesce(metadata, '{}')) <= 600
    and pg_catalog.octet_length(coalesce(metadata::text, ''))
        <= least(308, 2 * (jobq_private.defaults()).max_payload_depth)
$$;

revoke all on function jobq_private.are_usual from public;

comment on function jobq_private.are_usual is
'Says whether options of a new job are surely acceptable.';

-- Purpose: hold the idempotency keys of finished jobs that are to go back; return those jobs whose
-- key stands for another one, which stay.
-- Invariant: keys are taken in the order of kind and key, as by every batch; those that are free by
-- one statement. Of jobs with one key, the first has it. Raises: nothing.
create or replace function jobq_private.bar_redrives(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _keyed uuid[];
    _kinds text[];
    _queues text[];
    _keys text[];
    _barred uuid[];
    _job record;
begin
    select
        array_agg(g.job_id) filter (where g.place = 1),
        array_agg(g.kind) filter (where g.place = 1),
        array_agg(g.queue) filter (where g.place = 1),
        array_agg(g.key) filter (where g.place = 1),
        coalesce(array_agg(g.job_id) filter (where g.place > 1), '{}')
    into _keyed, _kinds, _queues, _keys, _barred
    from (
        select
            a.job_id, a.kind, a.queue, a.idempotency_key as key,
            row_number() over (
                partition by a.kind, a.idempotency_key order by a.job_id
            ) as place
        from unnest(bar_redrives.job_ids, bar_redrives.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.idempotency_key is not null
    ) as g;
    if _keyed is null then
        return _barred;
    end if;
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
    select g.kind, g.key, g.job_id
    from unnest(_keyed, _kinds, _keys) as g (job_id, kind, key)
    order by g.kind, g.key
    on conflict on constraint idempotency_key_pkey do nothing;

    for _job in
        select g.*
        from unnest(_keyed, _kinds, _queues, _keys) as g (job_id, kind, queue, key)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key
        where k.job_id is distinct from g.job_id
        order by g.kind, g.key
    loop
        if _job.job_id <> jobq_private.hold_key(
            _job.kind, _job.queue, _job.key, _job.job_id
        ) then
            _barred := _barred || _job.job_id;
        end if;
    end loop;
    return _barred;
end
$$;

revoke all on function jobq_private.bar_redrives from public;

comment on function jobq_private.bar_redrives is
'Holds the idempotency keys of finished jobs that go back, and returns those that have to stay.';

-- Purpose: cancel jobs that the caller has locked: those that wait at once, those that run by
-- asking their workers.
-- Invariant: a statement for each step, whatever their number; what waits goes straight into
-- the archive, whose foreign key checks the change. Raises: nothing of its own.
create or replace function jobq_private.cancel_jobs(job_ids uuid[], reason text)
returns table (job_id uuid, outcome text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _asked text[];
    _waiting uuid[];
    _attempts integer[];
begin
    with asked as (
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel_jobs.reason)
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is not null
        returning j.queue
    )
    select array_agg(distinct a.queue) into _asked from asked as a;
    perform jobq_private.notify('jobq_cancel', q) from unnest(_asked) as q;

    if cancel_jobs.reason is not null then
        update jobq_private.job as j
        set cancel_reason = cancel_jobs.reason
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    end if;
    select array_agg(j.job_id), array_agg(j.attempt) into _waiting, _attempts
    from jobq_private.job as j
    where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    if _waiting is not null then
        perform jobq_private.archive_jobs(_waiting, _attempts, 'cancelled', null, false);
    end if;
    insert into jobq_private.audit (action, subject, reason)
    select 'cancel', c.job_id::text, cancel_jobs.reason
    from unnest(cancel_jobs.job_ids) as c (job_id);
    return query
    select c.job_id, case
        when exists (
            select from jobq_private.job as j where j.job_id = c.job_id
        )
        then 'cancel_requested'
        else 'cancelled'
    end
    from unnest(cancel_jobs.job_ids) as c (job_id);
end
$$;

revoke all on function jobq_private.cancel_jobs from public;

comment on function jobq_private.cancel_jobs is
'Cancels jobs that the caller has locked, and says of each how.';

-- Purpose: refuse a row that claims a past it does not have.
-- Invariant: a new job has no previous state, and is queued or blocked;
-- only what redrives brings one back, from dead or cancelled: a trigger, or redrive_jobs().
-- Raises: JQ002.
create or replace function jobq_private.check_birth(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state in ('queued', 'blocked')
        and job.attempt = job.uncounted
        and job.max_attempts > 0
        and num_nonnulls(job.claimed_at, job.lease_expires_at, job.worker) = 0
        and (job.concurrency_key is null or job.lane_id is not null)
        and (
            (job.previous_state is null and job.attempt = 0)
            or (
                job.previous_state in ('dead', 'cancelled')
                and (
                    pg_trigger_depth() > 1 or current_setting('jobq.redrives', true) = 'on'
                )
            )
        )
    then
        return;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: a job is born queued or blocked, in the lane of its key, with no previous state, attempt or lease',
        job.job_id
    ));
end
$$;

revoke all on function jobq_private.check_birth from public;

comment on function jobq_private.check_birth is
'Refuses a job that claims a past.';

-- Purpose: read what is to change of waiting jobs, and refuse what no new job could have.
-- Invariant: reads only. What a payload must fit is looked up for each kind of these jobs; the
-- limit of a queue counts only those that come from another.
-- Raises: 22004, 22023, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_change(changes jsonb, job_ids uuid[])
returns jobq_private.new_job
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant text[] := array['run_at', 'priority', 'queue', 'payload', 'timeout', 'expires_at'];
    _set jobq_private.new_job;
    _settings jobq_private.settings;
    _mistyped text;
    _late text;
begin
    if changes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'changes');
    elsif jsonb_typeof(changes) <> 'object' or changes - _known <> '{}'
        or jsonb_strip_nulls(changes) = '{}'
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'changes must be an object with members among %s, one of them not null', _known
        ));
    end if;
    select min(c.key) into _mistyped
    from jsonb_each(jsonb_strip_nulls(changes - 'payload')) as c
    where jsonb_typeof(c.value) <> case c.key when 'priority' then 'number' else 'string' end;
    if _mistyped is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            '%s must be a JSON %s', _mistyped,
            case _mistyped when 'priority' then 'number' else 'string' end
        ));
    end if;
    _set := jsonb_populate_record(null::jobq_private.new_job, changes);
    _set.ordinal := 1;
    for _set.kind in
        select j.kind from jobq_private.job as j where j.job_id = any(check_change.job_ids)
        union
        select '*'
    loop
        _settings := jobq_private.settings_for(_set.kind, _set.queue);
        _settings.max_depth := null;
        if _set.payload is null then
            _settings.payload_schema := null;
            _settings.json_schema := null;
        end if;
        perform jobq_private.check_new_job(_set, _settings);
    end loop;
    if _set.payload is not null then
        perform jobq_private.check_payload_change(check_change.job_ids, _set.payload);
    end if;
    if num_nonnulls(_set.run_at, _set.expires_at) > 0 then
        select min(j.job_id::text) into _late
        from jobq_private.job as j
        where j.job_id = any(check_change.job_ids)
        and coalesce(_set.run_at, j.run_at) > clock_timestamp()
        and coalesce(_set.expires_at, j.expires_at) <= coalesce(_set.run_at, j.run_at);
        if _late is not null then
            perform jobq_private.raise_error('INVALID_ARGUMENT', format(
                'expires_at must be after run_at: job_id %s', _late
            ));
        end if;
    end if;
    if _set.queue is not null then
        perform jobq_private.check_queue_depth(array(
            select row(
                1, j.kind, null, _set.queue, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null, null, null, null
            )::jobq_private.new_job
            from jobq_private.job as j
            where j.job_id = any(check_change.job_ids) and j.queue <> _set.queue
        ));
    end if;
    return _set;
end
$$;

revoke all on function jobq_private.check_change from public;

comment on function jobq_private.check_change is
'Reads what is to change of waiting jobs, and refuses what no new job could have.';

-- Purpose: refuse what listen_events() cannot answer.
-- Invariant: on a standby the locks of the primary are not to be seen, and in a transaction
-- with one snapshot what others commit is not. Raises: 22004, 22023.
create or replace function jobq_private.check_listening(
    after text, queues text[], kinds text[], since timestamptz, max_events integer
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
        when max_events not between 1 and 1000
        then 'max_events must be from 1 to 1000'
        when cardinality(queues) = 0 or cardinality(kinds) = 0
        then 'queues and kinds name at least one each, or are null'
        when after is not null and since is not null
        then 'give after or since, and not both'
        when since not between '1970-01-01 UTC' and clock_timestamp()
        then 'since must lie between 1970 and now'
        when pg_is_in_recovery()
        then 'a standby cannot tell events; ask the primary'
        when current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
        then 'events are read at the isolation level read committed'
    end;
begin
    if array_ndims(queues) > 1 or array_ndims(kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and kinds must have one dimension'
        );
    elsif max_events is null
        or array_position(queues, null) is not null
        or array_position(kinds, null) is not null
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_events, or one of queues or kinds');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;

revoke all on function jobq_private.check_listening from public;

comment on function jobq_private.check_listening is
'Refuses what listen_events() cannot answer.';

-- Purpose: whether a JSON value may hold so many numbers that its text should not be made before
-- they are looked at: what is not wide has at most 22 MB. One that comes compressed out of a table is
-- wide, since its length says nothing: 2,000 bytes can be a gigabyte of text.
-- Invariant: looks at the head of the value alone, which costs nothing. No SET clause, so that
-- it is inlined. Raises: nothing.
create or replace function jobq_private.is_wide(value jsonb)
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select pg_catalog.pg_column_size(value) > 2000
        or pg_catalog.pg_column_compression(value) is not null
$$;

revoke all on function jobq_private.is_wide from public;

comment on function jobq_private.is_wide is
'Says whether a JSON value may hold many numbers.';

-- Purpose: whether a JSON value holds a number beyond the range of a double, or a zero with
-- more than 400 decimals.
-- Invariant: jsonb keeps such numbers (1e131071 and 0e-16383 have nine characters), but readers
-- of JSON refuse the large ones, and with them the whole batch that a worker has claimed, and
-- as text each has up to 131,073 characters. What holds few numbers is searched only where its
-- text is long, and what holds many before its text is made; by concat(), which the planner
-- does not evaluate. Raises: nothing.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (jobq_private.is_wide(value) or octet_length(concat(value)) > 308) and exists (
        select from jsonb_array_elements(jsonb_path_query_array(
            value,
            'strict $.** ? (@ > -2.5e-324 && @ < 2.5e-324 || @ >= 1.8e308 || @ <= -1.8e308)'
        )) as n (number)
        where n.number <> '0' or scale(n.number::numeric) > 400
    )
$$;

revoke all on function jobq_private.has_huge_number from public;

comment on function jobq_private.has_huge_number is
'Says whether a JSON value holds a number beyond the range of a double.';

-- Purpose: the bytes of a JSON value as text: 0 without one, null where a wide one holds a number
-- that has_huge_number() tells of.
-- Invariant: 600 kB of such numbers as 1e-16383 are more text than PostgreSQL can hold, so it is not
-- made; not by the planner for a constant either, since concat() is stable. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.json_size(value jsonb)
returns integer
language sql
stable
parallel safe
security invoker
as $$
    select case
        when jobq_private.is_wide(value) is not true
            or not jobq_private.has_huge_number(value)
        then pg_catalog.octet_length(pg_catalog.concat(value))
    end
$$;

revoke all on function jobq_private.json_size from public;

comment on function jobq_private.json_size is
'Returns the bytes of a JSON value as text.';

-- Purpose: why a new job is not acceptable by itself: the error's code and its detail; null
-- when it is. size is what json_size() says of payload and metadata together.
-- Invariant: a payload is looked at only where its text is long enough to be too deep or to
-- hold a huge number; years as clients in any time zone can hold them. No SET clause, so
-- that it is inlined, for one job as for a batch.
-- Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
security invoker
as $$
    select case
        when job.kind is null then array['NULL_ARGUMENT', 'kind']
        when pg_catalog.length(job.kind) not between 1 and 128
        then array['INVALID_ARGUMENT', 'kind must have 1 to 128 characters']
        when pg_catalog.length(job.queue) not between 1 and 128 or job.queue = '*'
        then array[
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters, and be one queue, not *'
        ]
        when job.priority not between -32768 and 32767
        then array['INVALID_ARGUMENT', 'priority must be from -32768 to 32767']
        when job.max_attempts not between 1 and 10000
        then array['INVALID_ARGUMENT', 'max_attempts must be from 1 to 10000']
        when job.timeout not between '1 ms' and '365 days'
        then array['INVALID_ARGUMENT', 'timeout must be from 1 ms to 365 days']
        when job.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then array['INVALID_ARGUMENT', 'run_at must be in the years 1 to 9999']
        when job.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        or job.expires_at <= coalesce(job.run_at, pg_catalog.now())
        then array[
            'INVALID_ARGUMENT', 'expires_at must be after run_at, in the years 1 to 9999'
        ]
        when pg_catalog.length(job.idempotency_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'idempotency_key must have 1 to 512 characters']
        when pg_catalog.length(job.dedup_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'dedup_key must have 1 to 512 characters']
        when job.dedup not in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')
        then array['INVALID_ARGUMENT', 'dedup must be skip, enqueue, replace, debounce or throttle']
        when job.dedup = 'replace' and job.dedup_key is null
        then array['INVALID_ARGUMENT', 'dedup is replace, which needs a dedup_key']
        when job.after_failure not in ('cancel', 'wait', 'run')
        then array['INVALID_ARGUMENT', 'after_failure must be cancel, wait or run']
        when pg_catalog.octet_length(job.concurrency_key) not between 1 and 1024
        then array['INVALID_ARGUMENT', 'concurrency_key must have 1 to 1024 bytes']
        when pg_catalog.jsonb_typeof(job.metadata) <> 'object'
        then array['INVALID_ARGUMENT', 'metadata must be a JSON object']
        when size > max_bytes
        then array[
            'PAYLOAD_TOO_LARGE', pg_catalog.format('%s bytes, at most %s', size, max_bytes)
        ]
        when size > 2 * max_depth and (
            pg_catalog.jsonb_path_exists(
                job.payload, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
            or pg_catalog.jsonb_path_exists(
                job.metadata, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
        )
        then array['PAYLOAD_TOO_DEEP', pg_catalog.format('at most %s levels', max_depth)]
        when size is null or size > 308 and (
            not jobq_private.is_wide(job.payload)
            and jobq_private.has_huge_number(job.payload)
            or not jobq_private.is_wide(job.metadata)
            and jobq_private.has_huge_number(job.metadata)
        )
        then array['PAYLOAD_INVALID', pg_catalog.format(
            '%s: a number beyond the range of a double', case
                when jobq_private.has_huge_number(job.payload) then 'payload'
                else 'metadata'
            end
        )]
    end
$$;

revoke all on function jobq_private.new_job_problem from public;

comment on function jobq_private.new_job_problem is
'Says why a new job is not acceptable by itself, as the code of an error and its detail.';

-- Purpose: refuse a new job that is not acceptable under the settings that hold for it.
-- Invariant: reads only; what its kind and queue do not ask for costs no query. Returns
-- true, so that it can stand in a condition; there it returns false, if may_be_false, for a job that
-- is not acceptable by itself, so that the error does not tell the whole statement.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_job(
    job jobq_private.new_job, settings jobq_private.settings, may_be_false boolean default false
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := jobq_private.json_size(job.payload)
        + jobq_private.json_size(job.metadata);
    _problem constant text[] := jobq_private.new_job_problem(
        job, _size, settings.max_payload_bytes, settings.max_payload_depth
    );
begin
    if _problem is not null and may_be_false then
        return false;
    elsif _problem is not null then
        perform jobq_private.raise_error(
            _problem[1], format('job %s: %s', job.ordinal, _problem[2])
        );
    end if;
    if num_nonnulls(settings.payload_schema, settings.json_schema) > 0 then
        if may_be_false and jobq_private.payload_schema_problem(array[job]) is not null then
            return false;
        end if;
        perform jobq_private.check_payload_schemas(array[job]);
    end if;
    if settings.concurrency_key is not null then
        perform jobq_private.check_concurrency_key(job, settings.concurrency_key);
    end if;
    if settings.max_depth is not null then
        perform jobq_private.check_queue_depth(array[job]);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_new_job from public;

comment on function jobq_private.check_new_job is
'Refuses a new job that is not acceptable under the settings that hold for it.';

-- Purpose: refuse a batch of new jobs when one of them is not acceptable.
-- Invariant: reads only; check_new_job() is the shorter way for one. Schemas of payloads are
-- not looked at before store_jobs() and store_job(), in the statement that stores.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_jobs(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text[];
    _bytes integer;
    _depth integer;
begin
    select g.max_payload_bytes, g.max_payload_depth into _bytes, _depth
    from jobq_private.setting as g;

    select array[p.problem[1], format('job %s: %s', p.ordinal, p.problem[2])] into _problem
    from (
        select j.ordinal, jobq_private.new_job_problem(j, t.size, _bytes, _depth) as problem
        from unnest(check_new_jobs.jobs) as j
        cross join lateral (
            select jobq_private.json_size(j.payload)
                + jobq_private.json_size(j.metadata) as size
            offset 0
        ) as t
    ) as p
    where p.problem is not null
    limit 1;

    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
    perform jobq_private.check_concurrency_keys(check_new_jobs.jobs);
    perform jobq_private.check_queue_depth(check_new_jobs.jobs);
end
$$;

revoke all on function jobq_private.check_new_jobs from public;

comment on function jobq_private.check_new_jobs is
'Refuses a batch of new jobs when one of them is not acceptable.';

-- Purpose: refuse another payload for a job that has run, and one that names another
-- concurrency key than the job has from its payload: the key is what limits were counted by.
-- Invariant: reads only. Raises: JQ002.
create or replace function jobq_private.check_payload_change(job_ids uuid[], payload jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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
        )
    into _ran, _keyed
    from jobq_private.job as j
    left join jobq_private.kind as k on k.kind = j.kind
    where j.job_id = any(check_payload_change.job_ids)
    and j.payload <> check_payload_change.payload;
    if _ran is not null then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s has run: its payload stays', _ran
        ));
    elsif _keyed is not null then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s has its concurrency key from its payload: it stays', _keyed
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_payload_change from public;

comment on function jobq_private.check_payload_change is
'Refuses another payload for a job that has run, or that would have another concurrency key.';

-- Purpose: which payload of a batch of new jobs does not fit the schema of its kind, and why; null
-- where all do.
-- Invariant: looks at the jobs only where a kind has a schema; a JSON Schema that
-- the database cannot enforce by itself is one for its extension. Raises: nothing.
create or replace function jobq_private.payload_schema_problem(jobs jobq_private.new_job[])
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
    select format('job %s: %s', j.ordinal, v.violation)
    from unnest(payload_schema_problem.jobs) as j
    join jobq_private.kind as k
        on k.kind = j.kind and (k.payload_schema is not null or k.json_schema is not null)
    cross join lateral (
        select case
            when k.payload_schema is not null then jobq_private.schema_violation(
                k.payload_schema, coalesce(j.payload, '{}'), 'payload'
            )
            else jobq_private.json_schema_violation(
                k.json_schema, coalesce(j.payload, '{}')
            )
        end as violation
    ) as v
    where v.violation is not null
    and exists (
        select from jobq_private.kind as k
        where k.payload_schema is not null or k.json_schema is not null
    )
    limit 1
$$;

revoke all on function jobq_private.payload_schema_problem from public;

comment on function jobq_private.payload_schema_problem is
'Says which payload of a batch of new jobs does not fit the schema of its kind, and why.';

-- Purpose: refuse a batch of new jobs when a payload does not fit the schema of its kind.
-- Invariant: returns true, so that it can stand in a condition: within the statement that pins the
-- version of a delivery it sees what that sees. Raises: JQ006.
create or replace function jobq_private.check_payload_schemas(jobs jobq_private.new_job[])
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := jobq_private.payload_schema_problem(jobs);
begin
    if _problem is not null then
        perform jobq_private.raise_error('PAYLOAD_INVALID', _problem);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_payload_schemas from public;

comment on function jobq_private.check_payload_schemas is
'Refuses a batch of new jobs when a payload does not fit the schema of its kind.';

-- Purpose: refuse a batch of new jobs when a queue would pass its max_depth.
-- Invariant: counts at most max_depth index entries, and only for queues that have a
-- limit. A job whose key is held adds nothing, so that a producer that tries again gets
-- its job; nor does the slot of a schedule, which was promised. Concurrent callers may
-- pass it together by what they add at that moment.
-- Raises: JQ010.
create or replace function jobq_private.check_queue_depth(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
    _limit integer;
    _adding bigint;
    _depth bigint;
begin
    if not exists (select from jobq_private.queue as q where q.max_depth is not null) then
        return;
    end if;
    for _queue, _limit, _adding in
        select s.queue, s.max_depth, sum(d.jobs)
        from (
            select j.kind, j.queue, count(*) as jobs
            from unnest(check_queue_depth.jobs) as j
            where j.schedule_id is null
            and not exists (
                select from jobq_private.idempotency_key as k
                where k.kind = j.kind and k.idempotency_key = j.idempotency_key
            )
            and not exists (
                select from jobq_private.job as l
                where l.kind = j.kind and l.dedup_key = j.dedup_key and l.dedup is not null
            )
            group by j.kind, j.queue
        ) as d
        cross join lateral jobq_private.settings_for(d.kind, d.queue) as s
        where s.max_depth is not null
        group by s.queue, s.max_depth
    loop
        select count(*) into _depth
        from (
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id is null
            union all
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id between jobq_private.lane_floor(_queue)
                and jobq_private.lane_ceiling(_queue)
            limit _limit
        ) as present;
        if _depth + _adding > _limit then
            perform jobq_private.raise_error('QUEUE_FULL', format(
                'queue %s: max_depth %s, %s more asked for', _queue, _limit, _adding
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.check_queue_depth from public;

comment on function jobq_private.check_queue_depth is
'Refuses a batch of new jobs when a queue would pass its max_depth.';

-- Purpose: refuse to change or delete jobs of queues that whoever has logged in may not work, at a
-- dry run as well.
-- Invariant: reads only; looks at no job while queue grants are not enforced. Raises: 42501.
create or replace function jobq_private.check_worked(job_ids uuid[], queue text default null)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _worked text[];
    _denied text;
begin
    _worked := jobq_private.worked_queues();
    if _worked is null then
        return;
    end if;
    select min(q.queue) into _denied
    from (
        select check_worked.queue
        union all
        select j.queue from jobq_private.job as j where j.job_id = any(check_worked.job_ids)
        union all
        select a.queue from jobq_private.job_archive as a where a.job_id = any(check_worked.job_ids)
    ) as q
    where q.queue <> all(_worked);
    if _denied is not null then
        perform jobq_private.raise_error('QUEUE_DENIED', 'queue ' || _denied);
    end if;
end
$$;

revoke all on function jobq_private.check_worked from public;

comment on function jobq_private.check_worked is
'Refuses to change or delete jobs of queues that the log-in may not work.';

-- Purpose: lock the jobs that an operator has chosen, and return their ids.
-- Invariant: bounded, oldest first, locked in the order of ids, live jobs before finished
-- ones. Jobs named by id must all be there in one of the states; a filter takes those that
-- are. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.choose_jobs(
    job_ids uuid[], queue text, kind text, metadata jsonb, max_jobs integer,
    dry_run boolean, reason text, states text[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    _chosen uuid[];
    _missing uuid;
    _state text;
begin
    if num_nulls(max_jobs, dry_run) > 0
        or exists (select from unnest(job_ids) as g (job_id) where g.job_id is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids, max_jobs and dry_run');
    elsif num_nonnulls(job_ids, queue, kind, nullif(metadata, '{}')) = 0 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'give job_ids, queue, kind or metadata, which must not be empty'
        );
    elsif jsonb_typeof(metadata) <> 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'metadata must be a JSON object');
    elsif max_jobs not between 1 and 100000 or cardinality(job_ids) > max_jobs then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'max_jobs must be from 1 to 100000, and no fewer than the job_ids'
        );
    elsif length(reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;

    _chosen := array(
        select j.job_id
        from jobq_private.job as j
        where j.state = any(choose_jobs.states)
        and (choose_jobs.job_ids is null or j.job_id = any(choose_jobs.job_ids))
        and (choose_jobs.queue is null or j.queue = choose_jobs.queue)
        and (choose_jobs.kind is null or j.kind = choose_jobs.kind)
        and (choose_jobs.metadata is null or j.metadata @> choose_jobs.metadata)
        order by j.job_id
        limit choose_jobs.max_jobs
        for update
    );
    if states && '{succeeded,dead,cancelled}' and cardinality(_chosen) < max_jobs then
        _chosen := _chosen || array(
            select a.job_id
            from jobq_private.job_archive as a
            where a.state = any(choose_jobs.states)
            and (choose_jobs.job_ids is null or a.job_id = any(choose_jobs.job_ids))
            and (choose_jobs.queue is null or a.queue = choose_jobs.queue)
            and (choose_jobs.kind is null or a.kind = choose_jobs.kind)
            and (choose_jobs.metadata is null or a.metadata @> choose_jobs.metadata)
            order by a.job_id
            limit choose_jobs.max_jobs - cardinality(_chosen)
            for update
        );
    end if;

    for _missing in
        select m from unnest(choose_jobs.job_ids) as m where m <> all(_chosen) order by m
    loop
        _state := (jobq.get_job(_missing)).state;
        if _state <> all(states) then
            perform jobq_private.raise_error('ILLEGAL_STATE', format(
                'job_id %s is %s; it would have to be %s', _missing, _state,
                array_to_string(states, ' or ')
            ));
        end if;
    end loop;
    return _chosen;
end
$$;

revoke all on function jobq_private.choose_jobs from public;

comment on function jobq_private.choose_jobs is
'Locks the jobs that an operator has chosen, and returns their ids.';

-- Purpose: read a cursor of listen_events().
-- Invariant: refuses what event_cursor() has not written, and a place that the clock has yet to
-- reach; a minute is allowed for, since a standby that was promoted has a clock of its own.
-- Raises: 22023.
create or replace function jobq_private.cursor_place(
    cursor text, out at timestamptz, out job_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if cursor_place.cursor !~ '^[0-9]{1,16}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be a cursor of listen_events()'
        );
    end if;
    at := timestamptz '1970-01-01 UTC'
        + interval '1 us' * split_part(cursor_place.cursor, '_', 1)::bigint;
    job_id := split_part(cursor_place.cursor, '_', 2)::uuid;
    if at > clock_timestamp() + interval '1 min' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after lies in the future: is it of another server?'
        );
    end if;
end
$$;

revoke all on function jobq_private.cursor_place from public;

comment on function jobq_private.cursor_place is
'Reads a cursor of listen_events().';

-- Purpose: delete jobs that succeed and leave no trace, and from whose ends nothing else follows:
-- what archive_jobs() does with them, without what it carries to the archive.
-- Invariant: only the attempt that holds the lease goes. Jobs are found, locked and passed over as
-- by archive_jobs(), and what is left to it is not locked. Clients that wait for any of these jobs
-- are told. Returns which went, null for none. Raises: nothing.
create or replace function jobq_private.drop_jobs(
    job_ids uuid[], attempts integer[], skip_held boolean,
    out gone uuid[], out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _attempt constant integer := case
        when attempts[1] = all(attempts) then attempts[1]
    end;
begin
    with ended as (
        delete from jobq_private.job as j
        where j.job_id = any(drop_jobs.job_ids)
        and case
            when _attempt is not null then j.attempt = _attempt
            else (j.job_id, j.attempt) in (
                select u.* from unnest(drop_jobs.job_ids, drop_jobs.attempts) as u
            )
        end
        and j.lease_expires_at is not null
        and j.keep[1] = '0'
        and num_nonnulls(j.lane_id, j.place, j.batch_id) = 0
        and not j.is_awaited
        and (
            not drop_jobs.skip_held
            or j.xmax = '0'
            or j.xmax = j.xmin
            or jobq_private.is_free(j.job_id)
        )
        returning j.job_id, j.attempt
    )
    select array_agg(e.job_id), array_agg(e.attempt)
    into drop_jobs.gone, drop_jobs.gone_attempts
    from ended as e;
    if drop_jobs.gone is null then
        return;
    end if;
    perform jobq_private.forget_traces(drop_jobs.gone, 1 < any(drop_jobs.gone_attempts));
    if jobq_private.is_held('awaiting', 0) then
        perform jobq_private.tell_ended(drop_jobs.gone);
    end if;
end
$$;

revoke all on function jobq_private.drop_jobs from public;

comment on function jobq_private.drop_jobs is
'Deletes jobs that succeed and leave no trace.';

-- Purpose: drop the partitions of the history that are past retention.
-- Invariant: jobs that others still need go back to the history, and so to a partition of
-- their day that make_partitions() makes anew. Waits at most 100 ms for a lock; one that is not had is tried again at the
-- next call. Ten at most, since each keeps a score of places in the server's lock table until the commit.
-- Returns how many were dropped. Raises: nothing.
create or replace function jobq_private.drop_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _partition text;
    _dropped bigint := 0;
    _kept jobq_private.job_archive[];
    _is_needed boolean;
begin
    for _partition in
        select c.relname
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        and to_date(right(c.relname, 8), 'YYYYMMDD') < _oldest
    loop
        exit when _dropped = 10;
        _kept := null;
        if _partition like 'job_archive%' then
            execute format(
                'select array_agg(row(a.*)::jobq_private.job_archive) from jobq_private.%I as a'
                ' where a.job_id in (select jobq_private.needed_jobs(%L, %L))',
                _partition, to_date(right(_partition, 8), 'YYYYMMDD'), _oldest
            ) into _kept;
            if _kept is not null then
                execute format(
                    'select count(*) = cardinality($1) from jobq_private.%I', _partition
                ) into _is_needed using _kept;
                continue when _is_needed;
            end if;
        end if;
        execute format('drop table jobq_private.%I', _partition);
        insert into jobq_private.job_archive select k.* from unnest(_kept) as k;
        _dropped := _dropped + 1;
    end loop;
    return _dropped;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; what is past retention is left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.drop_partitions from public;

comment on function jobq_private.drop_partitions is
'Drops the partitions of the history that are past retention.';

-- Purpose: write a place among the jobs that have ended, as a cursor.
-- Invariant: microseconds, so that nothing is rounded; cursor_place() reads it. Raises: nothing.
create or replace function jobq_private.event_cursor(at timestamptz, job_id uuid)
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (extract(epoch from event_cursor.at) * 1000000)::bigint || '_' || event_cursor.job_id
$$;

revoke all on function jobq_private.event_cursor from public;

comment on function jobq_private.event_cursor is
'Writes a place among the jobs that have ended, as a cursor.';

-- Purpose: up to when a page of listen_events() reads.
-- Invariant: the archive has no index in the order of ends, but its rows lie roughly in it. So
-- a span of a second grows until it holds a page, or 20,000 rows of any kind. Raises: nothing.
create or replace function jobq_private.event_span(
    since timestamptz, job_id uuid, until timestamptz, queues text[], kinds text[],
    max_events integer
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
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

revoke all on function jobq_private.event_span from public;

comment on function jobq_private.event_span is
'Returns up to when a page of events reads.';

-- Purpose: end waiting jobs that have expired, also where no worker would claim them.
-- Invariant: a bounded number at a call, by an index of such jobs alone; what somebody holds is
-- left to the next call. job_transition does the same to what a claim meets.
-- Returns how many ended. Raises: nothing.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _ended bigint;
begin
    update jobq_private.job as j
    set
        state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
        last_error = 'it could not start before ' || j.expires_at
    where j.job_id = any(array(
        select e.job_id
        from jobq_private.job as e
        where e.expires_at < clock_timestamp() and e.state in ('queued', 'retrying', 'blocked')
        order by e.expires_at
        limit expire_jobs.max_rows
        for update skip locked
    ));
    get diagnostics _ended = row_count;
    return _ended;
end
$$;

revoke all on function jobq_private.expire_jobs from public;

comment on function jobq_private.expire_jobs is
'Ends waiting jobs that have expired.';

-- Purpose: what the ends of jobs bring about: traces are forgotten, lanes called, looks left.
-- Invariant: the caller has ended these jobs in its transaction. Returns which of them left no
-- trace, null for none. Raises: nothing.
create or replace function jobq_private.follow_endings(
    endings jobq_private.ending[], out gone uuid[], out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queues text[];
    _lanes uuid[];
    _kinds text[];
    _keys text[];
    _awaited jobq_private.ending[];
begin
    select
        array_agg(e.job_id) filter (where e.leaves_nothing),
        array_agg(e.attempt) filter (where e.leaves_nothing),
        array_agg(e.queue) filter (where e.has_place),
        array_agg(e.lane_id) filter (where e.has_place),
        array_agg(e.kind) filter (where e.has_place),
        array_agg(e.concurrency_key) filter (where e.has_place),
        array_agg(e) filter (where e.is_awaited or e.batch_id is not null)
    into
        follow_endings.gone, follow_endings.gone_attempts, _queues, _lanes, _kinds, _keys,
        _awaited
    from unnest(follow_endings.endings) as e;
    if follow_endings.gone is not null then
        perform jobq_private.forget_traces(
            follow_endings.gone, 1 < any(follow_endings.gone_attempts)
        );
    end if;
    if _queues is not null then
        perform jobq_private.call_full_lanes(_queues, _lanes, _kinds, _keys);
    end if;
    if _awaited is not null then
        perform jobq_private.leave_looks(_awaited);
    end if;
end
$$;

revoke all on function jobq_private.follow_endings from public;

comment on function jobq_private.follow_endings is
'Does what the ends of jobs bring about.';

-- Purpose: the moment at which a UUID of version 7 was made, to the millisecond.
-- Invariant: a job's archive row is never older than its id, which lets lookups by id
-- pass over older partitions. Raises: nothing.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz
language sql
immutable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;

revoke all on function jobq_private.id_time from public;

comment on function jobq_private.id_time is
'The moment at which a UUID of version 7 was made.';

-- Purpose: forget what jobs that go have left beside their own rows: failed attempts, log,
-- steps and waits. Signals, which no index finds by the job, stay for the retention of events.
-- Invariant: nothing of it is older than the oldest of these jobs, so that partitions of the
-- days before are passed over. The caller holds the jobs' rows,
-- and may know that none of them has failed before. Raises: nothing.
create or replace function jobq_private.forget_traces(
    job_ids uuid[], have_failed boolean default true
)
returns void
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
    _since constant timestamptz := (
        select jobq_private.id_time(u.job_id) - interval '1 day'
        from unnest(forget_traces.job_ids) as u (job_id)
        order by u.job_id
        limit 1
    );
begin
    if have_failed then
        delete from jobq_private.attempt as a
        where a.job_id = any(forget_traces.job_ids) and a.finished_at >= _since;
    end if;
    delete from jobq_private.job_log as l
    where l.job_id = any(forget_traces.job_ids) and l.logged_at >= _since;
    delete from jobq_private.step as s where s.job_id = any(forget_traces.job_ids);
    delete from jobq_private.waiter as w where w.job_id = any(forget_traces.job_ids);
end
$$;

revoke all on function jobq_private.forget_traces from public;

comment on function jobq_private.forget_traces is
'Forgets failed attempts, log, steps and waits of jobs that go.';

-- Purpose: tell the clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: who ends jobs calls it only where somebody waits for some job: one lock shows
-- that. Jobs share 1024 locks, so that a notification may be
-- needless. A completion that looked before a client announced itself tells it nothing:
-- clients look by themselves too. docs/wake-ups.md says more. Raises: nothing.
create or replace function jobq_private.tell_ended(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _job_id uuid;
begin
    if jobq_private.is_held('awaiting_events', 0) then
        perform jobq_private.notify('jobq_events', '');
    end if;
    foreach _job_id in array tell_ended.job_ids loop
        if jobq_private.is_held('ending', hashtext(_job_id::text) & 1023) then
            perform jobq_private.notify('jobq_ended', _job_id::text);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.tell_ended from public;

comment on function jobq_private.tell_ended is
'Notifies the clients that wait for these jobs at commit, and nobody when none waits.';

-- Purpose: delete jobs, live or finished, with all that is known of them.
-- Invariant: the caller holds their rows. Jobs that wait for them are looked at, and so are
-- their batches, which do not succeed without them. is true keeps partial indexes away, by which
-- the array would be gone through for each of their entries. Raises: nothing.
create or replace function jobq_private.forget_jobs(job_ids uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select jobq_private.forget_traces(forget_jobs.job_ids);
    insert into jobq_private.look (about, id)
    select 'child', e.child
    from jobq_private.edge as e
    where e.parent = any(forget_jobs.job_ids) and e.is_open
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
        delete from jobq_private.job as j
        where j.job_id = any(forget_jobs.job_ids)
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
    where jobq_private.is_held('awaiting', 0)
$$;

revoke all on function jobq_private.forget_jobs from public;

comment on function jobq_private.forget_jobs is
'Deletes jobs with all that is known of them.';

-- Purpose: the id under which a dedup key makes a job: new_id, or for a throttled one that of the job
-- which it has made within its period; for one that looks at live jobs that of a job which itself
-- looked at none, and so is held by no index.
-- Invariant: the row of the key decides between concurrent callers that throttle. Raises: 22004,
-- 22023, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.hold_dedup_key(
    job jobq_private.new_job, new_id uuid, is_checked boolean
)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _settings jobq_private.settings;
    _dedup text;
    _holder uuid;
    _is_free boolean;
begin
    select s.* into _settings from jobq_private.settings_for(job.kind, job.queue) as s;
    _dedup := coalesce(job.dedup, _settings.dedup, 'enqueue');
    if _dedup = 'enqueue' or (_dedup <> 'throttle' and not exists (
        select from jobq_private.job as j
        where j.kind = job.kind and j.dedup_key = job.dedup_key and j.dedup is null
    )) then
        return new_id;
    end if;
    if not is_checked then
        perform jobq_private.check_new_job(job, _settings);
    end if;
    if _dedup <> 'throttle' then
        loop
            select y.job_id, y.created into _holder, _is_free
            from jobq_private.yield_dedup_key(job, new_id) as y;
            exit when not _is_free or not exists (
                select from jobq_private.job as j
                where j.kind = job.kind and j.dedup_key = job.dedup_key
            );
        end loop;
        return _holder;
    end if;
    insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
    values (job.kind, job.dedup_key, new_id, now() + _settings.dedup_period)
    on conflict on constraint throttle_pkey do update
    set job_id = excluded.job_id, until = excluded.until
    where t.until <= now();
    return (
        select t.job_id from jobq_private.throttle as t
        where t.kind = job.kind and t.dedup_key = job.dedup_key
    );
end
$$;

revoke all on function jobq_private.hold_dedup_key from public;

comment on function jobq_private.hold_dedup_key is
'The id under which a dedup key makes a job.';

-- Purpose: the job that an idempotency key stands for: this one, or an earlier one.
-- Invariant: the key's primary key decides between concurrent callers. A key that is free
-- again passes to the new job, once.
-- Raises: nothing.
create or replace function jobq_private.hold_key(
    kind text, queue text, idempotency_key text, job_id uuid
)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder uuid;
    _since timestamptz;
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        values (hold_key.kind, hold_key.idempotency_key, hold_key.job_id)
        on conflict on constraint idempotency_key_pkey do nothing;
        if found then
            return hold_key.job_id;
        end if;

        select k.job_id, k.created_at into _holder, _since
        from jobq_private.idempotency_key as k
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key;
        if _holder = hold_key.job_id or (found and not jobq_private.is_key_free(
            hold_key.kind, hold_key.queue, _holder, _since
        )) then
            return _holder;
        end if;

        update jobq_private.idempotency_key as k
        set job_id = hold_key.job_id, created_at = now()
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key
        and k.job_id = _holder;
        if found then
            return hold_key.job_id;
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.hold_key from public;

comment on function jobq_private.hold_key is
'Returns the job that an idempotency key stands for, this one or an earlier one.';

-- Purpose: hold the idempotency keys of a batch: by ordinal, an id for each of its jobs, and
-- whether the job is to be made under it. Both are null where no job has a key.
-- Invariant: keys are taken in the order of kind and key; those that are new by one
-- statement. Of jobs with one key, the first is made. Raises: nothing.
create or replace function jobq_private.hold_keys(
    jobs jobq_private.new_job[], out ids uuid[], out fresh boolean[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq_private.new_job;
begin
    if not exists (
        select from unnest(hold_keys.jobs) as j where j.idempotency_key is not null
    ) then
        return;
    end if;
    ids := array(
        select jobq_private.new_id() from unnest(hold_keys.jobs) as j order by j.ordinal
    );
    with given as materialized (
        select
            j.ordinal, j.kind, j.idempotency_key, ids[j.ordinal] as job_id,
            row_number() over (
                partition by j.kind, j.idempotency_key order by j.ordinal
            ) as place
        from unnest(hold_keys.jobs) as j
    ),
    held as (
        insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
        select g.kind, g.idempotency_key, g.job_id
        from given as g
        where g.idempotency_key is not null and g.place = 1
        order by g.kind, g.idempotency_key
        on conflict on constraint idempotency_key_pkey do nothing
        returning job_id
    )
    select array_agg(
        g.idempotency_key is null or h.job_id is not null order by g.ordinal
    )
    into fresh
    from given as g
    left join held as h on h.job_id = g.job_id;

    for _job in
        select j.* from unnest(hold_keys.jobs) as j
        where not fresh[j.ordinal]
        order by j.kind, j.idempotency_key, j.ordinal
    loop
        fresh[_job.ordinal] := ids[_job.ordinal] = jobq_private.hold_key(
            _job.kind, _job.queue, _job.idempotency_key, ids[_job.ordinal]
        );
    end loop;
end
$$;

revoke all on function jobq_private.hold_keys from public;

comment on function jobq_private.hold_keys is
'Holds the idempotency keys of a batch, and says which jobs are to be made.';

-- Purpose: check and insert a batch of new jobs; the one way in. Their ordinals are 1 to n.
-- Invariant: all or none. Every batch takes its locks in one order, so that batches cannot
-- deadlock: idempotency keys first, by kind and key, then dedup keys, by kind and key. Only
-- jobs with dedup keys go in one by one.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _job jobq_private.new_job;
begin
    if cardinality(insert_jobs.jobs) = 1 then
        _job := insert_jobs.jobs[1];
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
        return;
    end if;

    perform jobq_private.check_new_jobs(insert_jobs.jobs);
    if exists (
        select from unnest(insert_jobs.jobs) as j
        where coalesce(j.idempotency_key, j.dedup_key) is not null
    ) then
        return query
        select k.ordinal, k.job_id, k.created
        from jobq_private.insert_keyed_jobs(insert_jobs.jobs) as k;
        return;
    end if;
    return query
    select s.ordinal::integer, s.job_id, true
    from unnest(jobq_private.store_jobs(insert_jobs.jobs)) with ordinality as s (job_id, ordinal);
end
$$;

revoke all on function jobq_private.insert_jobs from public;

comment on function jobq_private.insert_jobs is
'Checks and inserts a batch of new jobs, all or none.';

-- Purpose: insert a batch of checked jobs of which some have idempotency or dedup keys.
-- Invariant: idempotency keys are taken first, by kind and key, then dedup keys, by kind and key.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.insert_keyed_jobs(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _job jobq_private.new_job;
    _ids uuid[];
    _fresh boolean[];
    _plain jobq_private.new_job[];
    _stored uuid[];
begin
    select h.ids, h.fresh into _ids, _fresh
    from jobq_private.hold_keys(insert_keyed_jobs.jobs) as h;
    _plain := array(
        select j from unnest(insert_keyed_jobs.jobs) as j
        where j.dedup_key is null and coalesce(_fresh[j.ordinal], true)
    );
    _stored := jobq_private.store_jobs(_plain, coalesce(_ids, '{}'));
    return query
    select j.ordinal, _stored[j.ordinality], true
    from unnest(_plain) with ordinality as j;
    for _job in
        select j.* from unnest(insert_keyed_jobs.jobs) as j
        where j.dedup_key is not null and coalesce(_fresh[j.ordinal], true)
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(
            _job, coalesce(_ids[_job.ordinal], jobq_private.new_id())
        ) as s;
    end loop;

    if false = any (_fresh) then
        perform pg_logical_emit_message(true, 'jobq', '');
        return query
        select j.ordinal, k.job_id, false
        from unnest(insert_keyed_jobs.jobs) as j
        join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
        where not _fresh[j.ordinal];
    end if;
end
$$;

revoke all on function jobq_private.insert_keyed_jobs from public;

comment on function jobq_private.insert_keyed_jobs is
'Inserts a batch of checked jobs of which some have keys.';

-- Purpose: whether no other transaction holds a job; if so, it is locked for the caller.
-- Invariant: asks the row's lock, since a mark that several transactions or savepoints have left
-- bears a number of another kind than a transaction's. Waits for nobody. Raises: nothing.
create or replace function jobq_private.is_free(job_id uuid)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    perform from jobq_private.job as j where j.job_id = is_free.job_id for update skip locked;
    return found;
end
$$;

revoke all on function jobq_private.is_free from public;

comment on function jobq_private.is_free is
'Whether no other transaction holds a job, which is locked for the caller then.';

-- Purpose: whether an idempotency key that stands for a job may pass to another one: the
-- key is past its retention and its job not live, or the job has failed and its kind says
-- that the key may be used again then.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.is_key_free(
    kind text, queue text, job_id uuid, created_at timestamptz
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if created_at < now() - (select g.key_retention from jobq_private.setting as g) then
        return not exists (
            select from jobq_private.job as j where j.job_id = is_key_free.job_id
        );
    end if;
    return jobq_private.has_failed(job_id) and (
        select s.reuse_key_after_failure
        from jobq_private.settings_for(is_key_free.kind, is_key_free.queue) as s
    );
end
$$;

revoke all on function jobq_private.is_key_free from public;

comment on function jobq_private.is_key_free is
'Says whether an idempotency key that stands for a job may pass to another one.';

-- Purpose: whether a payload of any size is acceptable by itself, beside metadata of at most 308
-- bytes, for enqueue().
-- Invariant: what new_job_problem() says of a job that has nothing else; planned once, which leaves
-- of it what looks at payloads, and of one of at most 308 bytes what looks at its depth. Hot: its
-- caller pins the search path. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.is_sound(payload jsonb)
returns boolean
language plpgsql
stable
strict
parallel safe
security invoker
as $$
declare
    _size integer;
begin
    if pg_column_size(is_sound.payload) <= 600
        and octet_length(is_sound.payload::text) <= 308
    then
        return not jsonb_path_exists(is_sound.payload, (
            'strict $.**{' || (jobq_private.defaults()).max_payload_depth::text || '}'
        )::jsonpath);
    end if;
    _size := jobq_private.json_size(is_sound.payload);
    return jobq_private.new_job_problem(
        row(
            1, 'kind', is_sound.payload, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, null, null, null, null
        )::jobq_private.new_job,
        _size, (jobq_private.defaults()).max_payload_bytes - 308,
        (jobq_private.defaults()).max_payload_depth
    ) is null;
end
$$;

revoke all on function jobq_private.is_sound from public;

comment on function jobq_private.is_sound is
'Says whether a payload is acceptable by itself.';

-- Purpose: pass what is born queued with no past, as nearly all are, and have the rest looked at.
-- Invariant: no WHEN clause, whose text PostgreSQL would read anew for every statement, 100,000
-- instructions; and no SET clause, which costs as much as the whole: it names the schema of all it
-- calls. Raises: JQ002.
create or replace function jobq_private.look_at_birth()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
as $$
begin
    if new.previous_state is null and new.claimed_at is null
        and new.lease_expires_at is null and new.worker is null
        and new.state operator(pg_catalog.=) 'queued'
        and new.attempt operator(pg_catalog.|) new.uncounted operator(pg_catalog.=) 0
        and new.max_attempts operator(pg_catalog.>) 0
        and (new.concurrency_key is null or new.lane_id is not null)
    then
        return new;
    end if;
    perform jobq_private.check_birth(new);
    return new;
end
$$;

revoke all on function jobq_private.look_at_birth from public;

comment on function jobq_private.look_at_birth is
'Has an inserted job looked at that is not simply queued.';

create or replace trigger job_birth
before insert on jobq_private.job
for each row execute function jobq_private.look_at_birth();

-- Purpose: what follows when a live job runs no longer, or ends: one that has reached a final
-- state leaves for the archive, and an attempt that ended without success is recorded.
-- Invariant: so `update … set state` is enough, for functions and for psql alike; the
-- foreign key has been checked before, by its name. The history has a row for each change out of running
-- by UPDATE, whoever makes it, so it has no gaps; success leaves by the archive, which is its own record,
-- and settle_failures() records what it does for all of a batch at once: its setting only tells
-- the time under which the row stands already, so nobody who sets it leaves a gap. The row is
-- not looked for, which would lock every day of the history; to add it again locks one. A
-- clock may step back meanwhile. One trigger with a short WHEN clause, since PostgreSQL reads the text of
-- each again for every statement, claims too. Raises: nothing of its own.
create or replace function jobq_private.follow_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _noted_at timestamptz;
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(
            array[new.job_id], array[new.attempt], new.state, null, false
        );
    end if;
    if old.lease_expires_at is not null and new.state <> 'succeeded' then
        _noted_at := jobq_private.noted_at(current_setting('jobq.notes_attempts', true));
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            old.job_id, old.attempt, new.state, old.claimed_at,
            case
                when _noted_at between now() - interval '1 min'
                    and clock_timestamp() + interval '1 min'
                then _noted_at
                else clock_timestamp()
            end,
            old.worker,
            case when new.state in ('retrying', 'dead') then new.last_error_code end,
            case when new.state in ('retrying', 'dead') then new.last_error end,
            case when new.state in ('retrying', 'dead') then new.last_error_details end,
            case when old.delivery_version is not null then old.kind end,
            old.region
        )
        on conflict do nothing;
        if found and (old.lane_id is not null or old.place is not null) then
            perform jobq_private.leave_lane(new);
        end if;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.follow_change from public;

comment on function jobq_private.follow_change is
'Archives a job that reached a final state, and records an attempt that ended without success.';

create or replace trigger job_end
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.follow_change();

-- Purpose: refuse a change of what identifies a job, and of the payload of one that has run.
-- Invariant: whoever writes, the payload changes only while no attempt has begun. Fires only
-- for an UPDATE that names one of these columns, and has no WHEN clause, whose text every
-- statement would copy: so no hot statement pays for it. Raises: JQ002.
create or replace function jobq_private.refuse_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
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
    or (new.payload is distinct from old.payload
        and (
            old.attempt > 0 or new.state <> old.state
            or old.state not in ('queued', 'blocked')
        ))
    or (old.concurrency_key is not null
        and (new.lane_id is null or (new.queue = old.queue) <> (new.lane_id = old.lane_id)))
    or (old.place is not null and new.queue <> old.queue)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: id, kind, keys, schedule, batch, delivery_version and created_at, and payload once it has run',
            old.job_id
        ));
    end if;
    return new;
end
$$;

revoke all on function jobq_private.refuse_change from public;

comment on function jobq_private.refuse_change is
'Refuses a change of what identifies a job.';

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, lane_id, queue, batch_id
on jobq_private.job
for each row
execute function jobq_private.refuse_change();

-- Purpose: an insert into the view enqueues.
-- Invariant: runs with the caller's rights, so it needs EXECUTE on enqueue(). What the
-- database decides (state, attempt, lease, id and more) cannot be given.
-- Raises: 22004, 22023, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND.
create or replace function jobq_private.enqueue_from_view()
returns trigger
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _other jobq.job := new;
begin
    _other.kind := null;
    _other.payload := null;
    _other.queue := null;
    _other.run_at := null;
    _other.priority := null;
    _other.max_attempts := null;
    _other.timeout := null;
    _other.idempotency_key := null;
    _other.dedup_key := null;
    _other.metadata := null;
    _other.concurrency_key := null;
    _other.expires_at := null;
    _other.state := nullif(new.state, 'queued');
    if not _other is null then
        raise exception using
            errcode = 'JQ002',
            message = 'a job is born queued, with an id of the database''s making',
            detail = format('given: %s', jsonb_strip_nulls(to_jsonb(_other))),
            hint = 'insert kind, payload and options only',
            constraint = 'ILLEGAL_STATE';
    end if;
    new.job_id := jobq.enqueue(
        new.kind, new.payload, new.queue, new.run_at, new.priority, new.max_attempts,
        new.timeout, new.idempotency_key, new.dedup_key, null, new.metadata,
        new.concurrency_key, new.expires_at
    );
    new := jobq.get_job(new.job_id);
    return new;
end
$$;

revoke all on function jobq_private.enqueue_from_view from public;

comment on function jobq_private.enqueue_from_view is
'Enqueues what is inserted into jobq.job.';

create or replace trigger job_insert
instead of insert on jobq.job
for each row execute function jobq_private.enqueue_from_view();

-- Purpose: make the rows of checked new jobs: what each leaves open is filled in from the
-- settings of its kind and queue.
-- Invariant: it is inlined into the statement that stores the rows, so it has no settings
-- of its own; the settings are read once for each kind and queue. ids has the id of each
-- job, in the order of jobs. The rows come in that order, too, so that ids and rows are stored
-- as claims read them: generate_subscripts() tells the planner that jobs are more than policies,
-- which are hashed then. Raises: nothing.
create or replace function jobq_private.job_rows(jobs jobq_private.new_job[], ids uuid[])
returns table (
    job_id uuid, kind text, payload jsonb, queue text, run_at timestamptz,
    priority integer, max_attempts integer, timeout interval, lease interval,
    idempotency_key text, dedup_key text, dedup jobq_private.dedup, metadata jsonb,
    schedule_id uuid, slot_at timestamptz, delivery_version integer, concurrency_key text,
    lane_id uuid, expires_at timestamptz, keep interval[], state text, batch_id uuid,
    is_awaited boolean
)
language sql
stable
parallel unsafe
security invoker
as $$
    with policy as materialized (
        select d.kind as of_kind, d.queue as of_queue, s.*
        from (select distinct j.kind, coalesce(j.queue, '') from pg_catalog.unnest(jobs) as j)
            as d (kind, queue)
        cross join lateral
            jobq_private.settings_for(d.kind, nullif(d.queue, '')) as s
    )
    select
        ids[j.ordinality], j.kind, coalesce(j.payload, '{}'), p.queue, coalesce(j.run_at, pg_catalog.now()),
        coalesce(j.priority, p.priority), coalesce(j.max_attempts, p.max_attempts),
        coalesce(j.timeout, p.timeout), p.lease, j.idempotency_key, j.dedup_key,
        case when j.dedup_key is not null then j.dedup end, coalesce(j.metadata, '{}'),
        j.schedule_id, j.slot_at, p.delivery_version, k.concurrency_key,
        jobq_private.lane_of(p.queue, k.concurrency_key, j.kind, p.is_limited), j.expires_at,
        p.keep,
        case
            when j.callback_of is null and coalesce(j.after, '{}') = '{}' then 'queued'
            else 'blocked'
        end,
        j.batch_id, coalesce(j.is_awaited, false)
    from rows from (
        pg_catalog.unnest(jobs), pg_catalog.generate_subscripts(jobs, 1)
    ) with ordinality as j
    join policy as p on p.of_kind = j.kind and p.of_queue = coalesce(j.queue, '')
    cross join lateral (
        select coalesce(j.concurrency_key, j.payload #>> p.concurrency_key)
    ) as k (concurrency_key)
$$;

revoke all on function jobq_private.job_rows from public;

comment on function jobq_private.job_rows is
'Makes the rows of checked new jobs, with what the settings of their kinds and queues say.';

-- Purpose: derive everything that follows from a change of state, whoever makes it.
-- Invariant: previous_state, its lane and the lease are stamped here; a claim stamps them itself,
-- and passes when all is as it would be here; where only its time is not, as when the clock was
-- put back, that is stamped again. The delivery to a paused endpoint does not begin, which
-- park_delivery() puts aside; a lease moves only with a change of state or a heartbeat, and never past claimed_at +
-- timeout + lease, so that a frozen worker cannot renew for ever. A claim has looked at the
-- limits, and says so by giving no lane; for whoever starts a job otherwise this
-- looks. No lane stays with a claim that was compared here, from queued or retrying: its change
-- is legal, and the foreign key need not look it up. A job that has expired dies instead of starting, whoever claims it. None waits whose
-- attempts are spent: it would break each claim that tries. Raises: JQ002, JQ011.
create or replace function jobq_private.stamp_transition()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_by_hand boolean;
begin
    if new.state = 'running' and new.lane is null and old.state in ('queued', 'retrying')
        and new.attempt = old.attempt + 1
        and new.previous_state = old.state
        and new.lease_expires_at = new.claimed_at + old.lease
        and new.uncounted = old.uncounted
        and new.worker is not null and new.heartbeat_at is null
    then
        if new.claimed_at between statement_timestamp() and clock_timestamp()
            and old.expires_at is null and old.delivery_version is null
        then
            return new;
        end if;
        new.attempt := old.attempt;
        new.previous_state := old.previous_state;
        new.claimed_at := old.claimed_at;
        new.lease_expires_at := old.lease_expires_at;
    end if;

    if new.previous_state is distinct from old.previous_state
        or new.attempt <> old.attempt
        or new.uncounted <> old.uncounted
        or new.lease_expires_at is distinct from old.lease_expires_at
        or new.claimed_at is distinct from old.claimed_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: previous_state, attempt and lease follow from the state', old.job_id
        ));
    end if;

    if new.state = 'running' and old.expires_at <= clock_timestamp() then
        new.state := 'dead';
        new.last_error_code := 'EXPIRED';
        new.last_error := 'it could not start before ' || old.expires_at;
        new.last_error_details := null;
    end if;

    if new.state = 'running' and old.state <> 'running'
        and old.delivery_version is not null
        and jobq_private.park_delivery(old.job_id, old.kind, old.run_at)
    then
        return null;
    elsif new.state <> old.state then
        _is_by_hand := new.state = 'running' and new.lane is not null;
        new.previous_state := old.state;
        new.lane := (pg_backend_pid() & 1023)::smallint;
        new.heartbeat_at := null;
        new.lease_expires_at := null;
        if new.state <> 'running' then
            new.place := null;
            new.waits_since := clock_timestamp();
        elsif _is_by_hand then
            new.place := jobq_private.take_place(new);
        end if;
        if new.state = 'running' then
            new.attempt := old.attempt + 1;
            new.claimed_at := clock_timestamp();
            new.worker := coalesce(new.worker, session_user);
            new.lease_expires_at := new.claimed_at + old.lease;
            if _is_by_hand then
                perform jobq_private.charge_job(new);
            end if;
        elsif new.state in ('queued', 'retrying') then
            new.claimed_at := null;
            new.worker := null;
            new.uncounted := old.uncounted
                + (new.state = 'queued' and old.state = 'running')::integer;
        end if;
    elsif (new.place is distinct from old.place and old.place is not null)
        or (new.lane is null and old.lane is not null)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: place and lane follow from the state', old.job_id
        ));
    elsif new.heartbeat_at is distinct from old.heartbeat_at and new.state = 'running' then
        new.heartbeat_at := clock_timestamp();
        new.lease_expires_at := greatest(
            old.lease_expires_at,
            least(
                new.heartbeat_at + old.lease, old.claimed_at + old.timeout + old.lease
            )
        );
    elsif new.worker is distinct from old.worker
        or new.heartbeat_at is distinct from old.heartbeat_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: worker and heartbeat follow from the state', old.job_id
        ));
    end if;
    if new.claimed_at is null and new.attempt - new.uncounted >= new.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are spent: it cannot wait for another',
            old.job_id, new.attempt - new.uncounted, new.max_attempts
        ));
    end if;
    return new;
end
$$;

revoke all on function jobq_private.stamp_transition from public;

comment on function jobq_private.stamp_transition is
'Stamps the previous state, the attempt and the lease of a job that changes its state.';

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.stamp_transition();

-- Purpose: an update of state in the view performs the transition.
-- Invariant: only the state, with the worker, run_at, result and error that belong to the
-- change, can be given; the tables' own triggers and foreign key decide whether it is
-- legal, as for every other writer. A row that somebody else has changed meanwhile counts
-- as not found.
-- Raises: JQ002, JQ003, JQ004, JQ005, JQ006, 23503.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.update_from_view()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq.job := new;
begin
    _kept.state := old.state;
    _kept.worker := old.worker;
    _kept.run_at := old.run_at;
    _kept.result := old.result;
    _kept.last_error := old.last_error;
    _kept.last_error_code := old.last_error_code;
    _kept.cancel_reason := old.cancel_reason;
    if new.state = old.state or _kept is distinct from old then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: an update of jobq.job changes the state', old.job_id
        ));
    end if;

    if old.finished_at is not null then
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
    return new;
end
$$;

revoke all on function jobq_private.update_from_view from public;

comment on function jobq_private.update_from_view is
'Performs the transition that an update of jobq.job asks for.';

create or replace trigger job_update
instead of update on jobq.job
for each row execute function jobq_private.update_from_view();

-- Purpose: how many jobs of a queue are claimed before the one with this place.
-- Invariant: the order of claim(); two ranges of job_ready_idx, each of which counts 10,001 at
-- most. The job itself is due, so nothing before it need be compared with now: a scan that has
-- two ends on run_at reads on to the later one. Raises: nothing.
create or replace function jobq_private.jobs_ahead(
    queue text, priority integer, run_at timestamptz, job_id uuid
)
returns bigint
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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
            and j.lane_id is null
            and j.priority = jobs_ahead.priority
            and (j.run_at, j.job_id) < (jobs_ahead.run_at, jobs_ahead.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority > jobs_ahead.priority
            and j.run_at <= now()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;

revoke all on function jobq_private.jobs_ahead from public;

comment on function jobq_private.jobs_ahead is
'Counts the jobs of a queue that are claimed before the one with this place.';

-- Purpose: how far down the ids a search of max_looked jobs reaches, the newest first, of those
-- made before one: the id of the last it looks at; null where there are fewer.
-- Invariant: counts what a search for these states has to look at, by descents of indexes that
-- are in the order of ids, whatever the statistics say; what runs, workers keep few, and its own
-- index finds it. Raises: nothing.
create or replace function jobq_private.look_floor(
    states text[], oldest uuid, before uuid, max_looked integer
)
returns uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashagg = off
as $$
    select l.job_id
    from (
        (
            select j.job_id
            from jobq_private.job as j
            where (states is null or states && '{blocked,queued,retrying}')
            and j.job_id < before and j.job_id >= oldest
            order by j.job_id desc
            limit max_looked
        )
        union all
        (
            select r.job_id
            from (
                select j.job_id
                from jobq_private.job as j
                where j.state = 'running'
                and 'running' = any(states) and not states && '{blocked,queued,retrying}'
                offset 0
            ) as r
            where r.job_id < before and r.job_id >= oldest
            order by r.job_id desc
            limit max_looked
        )
        union all
        (
            select a.job_id
            from jobq_private.job_archive as a
            where (states is null or 'succeeded' = any(states))
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked
        )
        union all
        (
            select r.job_id
            from unnest('{dead,cancelled}'::text[]) as s (state)
            cross join lateral (
                select a.job_id
                from jobq_private.job_archive as a
                where s.state = any(states) and 'succeeded' <> all(states)
                and a.state = s.state and a.state <> 'succeeded'
                and a.job_id < before and a.job_id >= oldest
                order by a.job_id desc
                limit max_looked
            ) as r
        )
    ) as l
    order by l.job_id desc
    offset max_looked - 1
    limit 1
$$;

revoke all on function jobq_private.look_floor from public;

comment on function jobq_private.look_floor is
'How far down the ids a search of so many jobs reaches.';

-- Purpose: make a history table ready for one day (UTC).
-- Invariant: rows that came to the default partition meanwhile are moved. The parent is
-- locked first, so that a completion waits there and not with its row on the way to the
-- default partition, where it would fail. Other partitions are not locked, so that a
-- vacuum of theirs is not in the way. Waits at most 100 ms for a lock, for completions
-- go first. Raises: 55P03 when the lock is not had.
create or replace function jobq_private.make_partition(relation text, day date)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _column constant text :=
        case relation when 'job_log' then 'logged_at' else 'finished_at' end;
    _name constant text := format('%s_%s', relation, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('jobq_private.' || _name) is not null then
        return false;
    end if;
    execute format(
        'lock table only jobq_private.%I in share row exclusive mode', relation
    );
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

revoke all on function jobq_private.make_partition from public;

comment on function jobq_private.make_partition is
'Makes a history table ready for one day; true when it was not.';

-- Purpose: have partitions for today and the week ahead: of the first day that lacks some.
-- Invariant: a day at a time, and the archive's last, since completions wait for its lock until
-- the commit; maintain() comes back for the next. What a missing partition would hold goes to the default partition, and from
-- there to one for its day, also when that has passed; so nothing outlives its retention.
-- A lock that is not had at once is tried again at the next call. Returns how many were
-- made. Raises: nothing.
create or replace function jobq_private.make_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    _relation text;
    _day date;
    _first date;
    _made bigint := 0;
begin
    for _day, _relation in
        select d.day, d.relation
        from (
            select now()::date + n.days, r.relation
            from generate_series(0, 7) as n (days)
            cross join unnest(array['job_archive', 'attempt', 'job_log']) as r (relation)
            union
            select a.finished_at::date, 'job_archive' from jobq_private.job_archive_default as a
            union
            select a.finished_at::date, 'attempt' from jobq_private.attempt_default as a
            union
            select l.logged_at::date, 'job_log' from jobq_private.job_log_default as l
        ) as d (day, relation)
        order by d.day, d.relation = 'job_archive'
    loop
        exit when _day > _first;
        if jobq_private.make_partition(_relation, _day) then
            _first := _day;
            _made := _made + 1;
        end if;
    end loop;
    return _made;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; its partitions are left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.make_partitions from public;

comment on function jobq_private.make_partitions is
'Makes partitions of the history ahead of time, a day at a time.';

-- Purpose: a UUID of version 7, ordered by time, also within a batch of one session, whose tenth
-- byte is the number of this shard.
-- Invariant: PostgreSQL 18 has it; below, 12 bits of microseconds follow the milliseconds
-- (RFC 9562, section 6.2, method 3). 54 random bits are left. No SET clause, so that it is
-- inlined, and the number is a constant in it. Raises: nothing.
-- creates: function jobq_private.new_id
do $do$
begin
    if current_setting('server_version_num')::integer >= 180000 then
        create or replace function jobq_private.new_id()
        returns uuid
        language sql
        volatile
        parallel safe
        security invoker
        as $$
        select pg_catalog.encode(
            pg_catalog.set_byte(
                pg_catalog.uuid_send(pg_catalog.uuidv7()), 9, jobq_private.own_shard()
            ),
            'hex'
        )::uuid
        $$;
    else
        create or replace function jobq_private.new_id()
        returns uuid
        language sql
        volatile
        parallel safe
        security invoker
        as $$
        select pg_catalog.encode(
            pg_catalog.substring(pg_catalog.int8send(t.us / 1000), 3)
            || pg_catalog.substring(
                pg_catalog.int4send((28672 + (t.us % 1000) * 4096 / 1000)::integer), 3
            )
            || pg_catalog.set_byte(
                pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
                1, jobq_private.own_shard()
            ),
            'hex'
        )::uuid
        from (
            select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as us
        ) as t
        $$;
    end if;
end
$do$;

revoke all on function jobq_private.new_id() from public;

comment on function jobq_private.new_id() is 'A new UUID of version 7.';

-- Purpose: the time under which settle_failures() has recorded attempts, as its setting tells
-- it: in microseconds since 1970, in no session's style of dates. Null for any other text.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.noted_at(setting text)
returns timestamptz
language sql
immutable
parallel safe
security invoker
as $$
    select case
        when setting ~ '^[0-9]{16}$'
        then pg_catalog.to_timestamp(setting::double precision / 1000000)
    end
$$;

revoke all on function jobq_private.noted_at from public;

comment on function jobq_private.noted_at is
'Reads the time at which a batch of attempts was recorded.';

-- Purpose: forget finished jobs that their kind keeps for less than the global retention.
-- Invariant: a bounded number at a call, the longest overdue first, found by an index of
-- such jobs alone. One that others need is put off, so that it is not looked at in every call; who
-- does not see all queues may not see who needs it, and leaves it to others. What somebody holds is
-- left to the next call. Idempotency keys stay for their own retention. Returns how many went.
-- Raises: nothing.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _sees_all boolean;
    _gone uuid[];
begin
    _sees_all := jobq_private.worked_queues() is null;
    with due as materialized (
        select
            a.job_id, a.finished_at,
            jobq_private.needed_until(a.job_id, a.batch_id, a.finished_at) as needed_until
        from jobq_private.job_archive as a
        where a.prune_at < now()
        and (
            _sees_all
            or (
                a.batch_id is null
                and not exists (select from jobq_private.edge as e where e.parent = a.job_id)
            )
        )
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ),
    put_off as (
        update jobq_private.job_archive as a
        set prune_at = nullif(greatest(d.needed_until, now() + interval '1 s'), 'infinity')
        from due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        and d.needed_until is not null
    ),
    gone as (
        delete from jobq_private.job_archive as a
        using due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        and d.needed_until is null
        returning a.job_id
    )
    select array_agg(g.job_id) into _gone from gone as g;
    if _gone is not null then
        perform jobq_private.forget_traces(_gone);
    end if;
    return coalesce(cardinality(_gone), 0);
end
$$;

revoke all on function jobq_private.prune_jobs from public;

comment on function jobq_private.prune_jobs is
'Forgets finished jobs that their kind keeps for less than the global retention.';

-- Purpose: a job that has not begun takes the payload of a later call, and waits on from then: by
-- dedup_period or until the call's run_at, but no longer in all than dedup_max_wait.
-- Invariant: a job that has begun is left as it is; one that is blocked waits for its others as
-- well. Raises: nothing.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane record;
begin
    update jobq_private.job as j
    set
        payload = coalesce(job.payload, '{}'),
        run_at = least(
            coalesce(job.run_at, now() + s.dedup_period), j.created_at + s.dedup_max_wait
        )
    from jobq_private.settings_for(job.kind, job.queue) as s
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0
    returning case when j.state = 'queued' then j.lane_id end as lane_id, j.queue, j.kind,
        j.concurrency_key, j.priority, j.run_at
    into _lane;
    if _lane.lane_id is not null then
        perform jobq_private.call_lane(
            _lane.lane_id, _lane.queue, _lane.concurrency_key, _lane.priority, _lane.run_at
        );
        perform jobq_private.call_full_lanes(
            array[_lane.queue], array[_lane.lane_id], array[_lane.kind],
            array[_lane.concurrency_key]
        );
    end if;
    if _lane.run_at < now() + interval '60 s' then
        perform jobq_private.wake(array[_lane.queue]);
    end if;
end
$$;

revoke all on function jobq_private.put_off from public;

comment on function jobq_private.put_off is
'Has a job that has not begun take the payload of a later call, and wait on.';

-- Purpose: read new jobs that a caller gives as a JSON array.
-- Invariant: an unknown member is refused, so that no misspelt option is passed over, and so is
-- a null payload, which would read as none. Planned once: a plan made for the batch as a
-- constant copies it several times. Reads nothing.
-- Raises: 22004, 22023.
create or replace function jobq_private.read_jobs(jobs jsonb, known text[])
returns jobq_private.new_job[]
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text;
begin
    if read_jobs.jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'jobs');
    elsif jsonb_typeof(read_jobs.jobs) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'jobs must be a JSON array');
    end if;

    select format('job %s: ', e.n) || case
        when e.job @> '{"payload": null}' then 'payload must not be null; without one it is {}'
        else format('must be an object with members among %s', read_jobs.known)
    end
    into _problem
    from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
    where jsonb_typeof(e.job) <> 'object' or e.job - read_jobs.known <> '{}'
    or e.job @> '{"payload": null}'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;

    begin
        return array(
            select jsonb_populate_record(
                row(
                    e.n, null, null, null, null, null, null, null, null, null, null, null, null,
                    null, null, null, null, null, null, null, null
                )::jobq_private.new_job, e.job
            )
            from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
        );
    exception
        when data_exception then
            _problem := jobq_private.unreadable_member(read_jobs.jobs);
    end;
    perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    return null;
end
$$;

revoke all on function jobq_private.read_jobs from public;

comment on function jobq_private.read_jobs is
'Reads new jobs that a caller gives as a JSON array.';

-- Purpose: put dead or cancelled jobs that the caller has locked back among the live ones, blocked
-- where they have to wait again; one whose idempotency key or dedup key stands for another job
-- stays.
-- Invariant: a statement for each step, whatever their number. What archive_redrive says of one
-- job holds here for each; the setting tells job_birth that they have the past they claim. Rows are
-- found by an array of ids, in the partitions of their days, whatever the statistics say: is true
-- keeps the index of the states away, bitmaps those of other columns; then the array would be
-- gone through for each row, as it is where it stands in any other condition than an index's.
-- Raises: nothing.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[], latest boolean default false
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _of_parents constant text[] := '{PARENT_FAILED,PARENT_GONE}'::text[];
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _barred constant uuid[] := jobq_private.bar_redrives(job_ids, finished_ats);
    _waiting uuid[];
    _back uuid[];
    _blocked uuid[];
    _timed_out uuid[];
    _queues text[];
    _has_lanes boolean;
begin
    _waiting := jobq_private.wait_again(array(
        select i.job_id from unnest(redrive_jobs.job_ids) as i (job_id)
        where i.job_id not in (select b from unnest(_barred) as b)
    ));
    perform set_config('jobq.redrives', 'on', true);
    with back as (
        insert into jobq_private.job (
            run_at, uncounted, state, previous_state, is_awaited, waits_since, lane,
            delivery_version, last_error_code, last_error,
            -- columns of jobq_private.job but expires_at, expiries, claimed_at, heartbeat_at,
            -- lease_expires_at, cancel_requested_at, cancel_reason, worker, place, progress:
            job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts,
            priority, region, queue, kind, lane_id, concurrency_key, batch_id,
            idempotency_key, dedup_key, dedup, last_error_details, keep, metadata, payload
            -- end
        )
        select
            now(), a.attempt,
            case
                when a.job_id in (select w from unnest(_waiting) as w) then 'blocked'
                else 'queued'
            end, a.state, true, clock_timestamp(), pg_backend_pid() & 1023,
            case
                when not redrive_jobs.latest then a.delivery_version
                else (select k.delivery_version from jobq_private.kind as k where k.kind = a.kind)
            end,
            case when a.last_error_code <> all(_of_parents) then a.last_error_code end,
            case when a.last_error_code <> all(_of_parents) then a.last_error end,
            -- the same of a:
            a.job_id, a.created_at, a.slot_at, a.lease, a.timeout, a.schedule_id, a.attempt,
            a.max_attempts, a.priority, a.region, a.queue, a.kind, a.lane_id,
            a.concurrency_key, a.batch_id, a.idempotency_key, a.dedup_key, a.dedup,
            a.last_error_details, a.keep, a.metadata, a.payload
            -- end
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where (a.state in ('dead', 'cancelled')) is true
        and a.job_id not in (select b from unnest(_barred) as b)
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key, (case when dedup is null then job_id end))
        where dedup_key is not null do nothing
        returning job_id, state, queue, lane_id, last_error_code
    )
    select
        array_agg(b.job_id), array_agg(b.job_id) filter (where b.state = 'blocked'),
        array_agg(b.job_id) filter (where b.last_error_code = 'EVENT_TIMEOUT'),
        array_agg(distinct b.queue order by b.queue),
        count(b.lane_id) > 0
    into _back, _blocked, _timed_out, _queues, _has_lanes
    from back as b;
    perform set_config('jobq.redrives', '', true);
    insert into jobq_private.look (about, id)
    select 'parent', i.job_id from unnest(redrive_jobs.job_ids) as i (job_id)
    where not exists (
        select from unnest(_back || _barred) as b (job_id) where b.job_id = i.job_id
    );
    if _back is null then
        return;
    end if;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
    and a.finished_at = c.finished_at and a.finished_at between _first and _last
    and a.job_id in (select b from unnest(_back) as b);
    if _has_lanes then
        update jobq_private.gate as g
        set held_until = '-infinity', hold_reason = null
        from jobq_private.job as j
        where j.job_id = any(_back)
        and g.gate_id = j.lane_id
        and g.hold_reason = format('job %s is dead', j.job_id)
        and g.held_until = 'infinity';
        perform jobq_private.call_lanes(_back);
    end if;
    if _timed_out is not null then
        perform jobq_private.forget_timeouts(_timed_out);
    end if;
    if _blocked is not null then
        perform jobq_private.look_again(_blocked, _back);
    end if;
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;

revoke all on function jobq_private.redrive_jobs from public;

comment on function jobq_private.redrive_jobs is
'Puts dead or cancelled jobs that the caller has locked back among the live ones.';

-- Purpose: say which job holds a key of a finished job that was not redriven.
-- Invariant: reads only; returns where none does, as when somebody else has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder uuid;
begin
    select k.job_id into _holder
    from jobq_private.idempotency_key as k
    where k.kind = job.kind
    and k.idempotency_key = job.idempotency_key
    and k.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('IDEMPOTENCY_CONFLICT', format(
            'held by job_id %s: kind %s, idempotency_key %s', _holder, job.kind,
            job.idempotency_key
        ));
    end if;
    select j.job_id into _holder
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    and j.dedup is not null
    and j.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('DEDUP_CONFLICT', format(
            'held by job_id %s: kind %s, dedup_key %s', _holder, job.kind, job.dedup_key
        ));
    end if;
end
$$;

revoke all on function jobq_private.refuse_redrive from public;

comment on function jobq_private.refuse_redrive is
'Raises which job holds a key of a finished job that was not redriven.';

-- Purpose: jobs that fit a filter, the newest first. When it has looked at 100,000 without finding
-- max_jobs, a last row has nothing but a job_id, which `before` takes to go on from there.
-- Invariant: looks at a thousand first, so that a page that fills costs little, and never at
-- more than that, so that a filter which nothing fits costs what it may. Raises: nothing.
create or replace function jobq_private.search_jobs(
    states text[], kind text, queue text, metadata jsonb, idempotency_key text, trigger text,
    error_code text, oldest uuid, before uuid, max_jobs integer
)
returns setof jobq.job
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _most constant integer := 100000;
    _is_ended constant boolean := coalesce(states <@ '{succeeded,dead,cancelled}', false);
    _until uuid := search_jobs.before;
    _looked integer := 0;
    _part integer := 1000;
    _left integer := search_jobs.max_jobs;
    _floor uuid;
    _found integer;
    _mark jobq.job;
begin
    while _looked < _most loop
        _floor := jobq_private.look_floor(search_jobs.states, oldest, _until, _part);
        return query
        select j.*
        from jobq.job as j
        where j.job_id < _until and j.job_id >= coalesce(_floor, oldest)
        and (search_jobs.states is null or j.state = any(search_jobs.states))
        and (j.finished_at is not null or not _is_ended)
        and (search_jobs.kind is null or j.kind = search_jobs.kind)
        and (search_jobs.queue is null or j.queue = search_jobs.queue)
        and (search_jobs.metadata is null or j.metadata @> search_jobs.metadata)
        and (
            search_jobs.idempotency_key is null
            or j.idempotency_key = search_jobs.idempotency_key
        )
        and (
            search_jobs.trigger is null
            or jobq_private.job_trigger(j) = search_jobs.trigger
        )
        and (
            search_jobs.error_code is null
            or j.last_error_code = search_jobs.error_code
        )
        order by j.job_id desc
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

revoke all on function jobq_private.search_jobs from public;

comment on function jobq_private.search_jobs is
'Jobs that fit a filter, and where to go on when too many were looked at.';

-- Purpose: an instant before which no end can be added to the archive any more.
-- Invariant: who ends jobs locks the archive (ROW EXCLUSIVE) before it reads the clock, and
-- lets go when what it did can be seen (see archive_jobs). So once those are gone that held
-- the lock after the clock was read here, all ends before that are seen by a new snapshot.
-- Null when they are not gone within the patience, or the caller is one of them. Raises: nothing.
create or replace function jobq_private.settled_at(patience interval)
returns timestamptz
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
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

revoke all on function jobq_private.settled_at from public;

comment on function jobq_private.settled_at is
'Returns an instant before which no job''s end can be added any more, or null.';

-- Purpose: check and insert one job, or find the job that holds its idempotency or dedup
-- key already.
-- Invariant: unique indexes alone decide between concurrent callers; each look follows a
-- lost insert with a new snapshot. Running jobs are never replaced. The slot of a schedule
-- was checked when that was declared, and its key is not held: tick() fires each slot once.
-- Before it holds a key a job is checked by the defaults where no kind or queue has rules; what is
-- stored goes by the tables.
-- held is the id under which a batch, checked as a whole, holds the job's idempotency key.
-- Who finds a job writes, if only an empty message: so the commit waits for the disk and
-- the standby as that of the job must have, and a repeated call is not answered with what
-- a failover takes back. Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_job(
    job jobq_private.new_job, held uuid default null, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant uuid := coalesce(held, jobq_private.new_id());
    _is_checked boolean := held is not null or job.schedule_id is not null;
    _queue text;
    _lane_id uuid;
    _key text;
    _priority integer;
    _run_at timestamptz;
    _tries integer := 0;
    _is_told boolean;
begin
    job_id := _new;
    created := true;
    if job.idempotency_key is not null and not _is_checked then
        if jobq_private.has_kind_rules() or jobq_private.has_queue_rules() then
            select jobq_private.check_new_job(job, s) into _is_checked
            from jobq_private.settings_for(job.kind, job.queue) as s;
        else
            _is_checked := jobq_private.check_new_job(job, jobq_private.defaults());
        end if;
        job_id := jobq_private.hold_key(job.kind, job.queue, job.idempotency_key, _new);
        created := job_id = _new;
    end if;

    if job.dedup_key is not null and created then
        job_id := jobq_private.hold_dedup_key(job, _new, _is_checked);
        created := job_id = _new;
    end if;

    while created loop
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version,
            concurrency_key, lane_id, expires_at, keep, state, batch_id
        )
        select
            _new, job.kind, coalesce(job.payload, '{}'), s.queue,
            coalesce(job.run_at, case
                when job.dedup_key is not null
                    and coalesce(job.dedup, s.dedup) = 'debounce'
                then now() + s.dedup_period
            end, now()), least(greatest(coalesce(job.priority, s.priority), -32768), 32767),
            coalesce(job.max_attempts, s.max_attempts), coalesce(job.timeout, s.timeout),
            s.lease, job.idempotency_key, job.dedup_key,
            case
                when job.dedup_key is not null
                then nullif(nullif(coalesce(job.dedup, s.dedup), 'enqueue'), 'throttle')
            end,
            coalesce(job.metadata, '{}'), job.schedule_id, job.slot_at,
            s.delivery_version,
            k.concurrency_key,
            jobq_private.lane_of(s.queue, k.concurrency_key, job.kind, s.is_limited),
            job.expires_at, s.keep,
            case
                when job.callback_of is null and coalesce(job.after, '{}') = '{}' then 'queued'
                else 'blocked'
            end,
            job.batch_id
        from jobq_private.settings_for(job.kind, job.queue) as s
        cross join lateral (
            select coalesce(job.concurrency_key, job.payload #>> s.concurrency_key)
        ) as k (concurrency_key)
        where case
            when _is_checked
            then job.schedule_id is not null
                or num_nonnulls(s.payload_schema, s.json_schema) = 0
                or jobq_private.check_payload_schemas(array[job])
            else jobq_private.check_new_job(job, s, true)
        end
        on conflict (kind, dedup_key, (case when j.dedup is null then j.job_id end))
        where dedup_key is not null do nothing
        returning j.queue, j.lane_id, j.concurrency_key, j.priority, j.run_at
        into _queue, _lane_id, _key, _priority, _run_at;
        if found then
            if job.after is not null or job.batch_id is not null then
                perform jobq_private.follow(array[job], array[_new]);
            end if;
            if _lane_id is not null then
                perform jobq_private.call_lane(_lane_id, _queue, _key, _priority, _run_at);
            end if;
            if _run_at < now() + interval '60 s' and jobq_private.announce(_queue) then
                _is_told := jobq_private.notify_queue(_queue);
            end if;
            return;
        end if;
        _tries := _tries + 1;
        if _tries = 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
        if not _is_checked then
            select jobq_private.check_new_job(job, s) into _is_checked
            from jobq_private.settings_for(job.kind, job.queue) as s;
        end if;
        select y.job_id, y.created into job_id, created
        from jobq_private.yield_dedup_key(job, _new) as y;
    end loop;

    perform pg_logical_emit_message(true, 'jobq', '');
    update jobq_private.idempotency_key as k
    set job_id = store_job.job_id
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key and k.job_id = _new;
end
$$;

revoke all on function jobq_private.store_job from public;

comment on function jobq_private.store_job is
'Checks and inserts one job, or finds the job that holds its idempotency or dedup key.';

-- Purpose: insert many checked jobs that have no dedup key, and wake their queues; their ids, in
-- the order of the jobs.
-- Invariant: one statement, whatever their number. ids has, by ordinal, the ids under which
-- idempotency keys are held already. Raises: 22004, 22023, JQ001, JQ002, JQ006.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], ids uuid[] default '{}', is_checked boolean default false
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _ids constant uuid[] := case
        when store_jobs.ids = '{}' then array(
            select jobq_private.new_id() from generate_subscripts(store_jobs.jobs, 1)
        )
        else array(
            select coalesce(store_jobs.ids[j.ordinal], jobq_private.new_id())
            from unnest(store_jobs.jobs) as j
        )
    end;
    _queues text[];
    _has_keys boolean;
    _has_links boolean;
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
        from jobq_private.job_rows(store_jobs.jobs, _ids) as r
        where store_jobs.is_checked
        or (select jobq_private.check_payload_schemas(store_jobs.jobs))
        returning
            case when j.run_at < now() + interval '60 s' then j.queue end as queue,
            j.lane_id is not null as has_key,
            j.state = 'blocked' or j.batch_id is not null as has_link
    ),
    kinds as (
        select s.queue, bool_or(s.has_key) as has_keys, bool_or(s.has_link) as has_links
        from stored as s
        group by s.queue
    )
    select
        array_agg(k.queue) filter (where k.queue is not null), bool_or(k.has_keys),
        bool_or(k.has_links)
    into _queues, _has_keys, _has_links
    from kinds as k;

    if _has_links then
        perform jobq_private.follow(store_jobs.jobs, _ids);
    end if;
    if _has_keys then
        perform jobq_private.call_lanes(_ids);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return _ids;
end
$$;

revoke all on function jobq_private.store_jobs from public;

comment on function jobq_private.store_jobs is
'Inserts many checked jobs without dedup keys, wakes their queues, and returns their ids.';

-- Purpose: what is added to the transitions is legal in every lane.
-- Invariant: the foreign key of the lanes takes along what is changed or deleted.
-- Raises: nothing.
create or replace function jobq_private.fill_lanes()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.transition_lane (lane, from_state, to_state)
    select n.lane, a.from_state, a.to_state
    from generate_series(0, 1023) as n (lane)
    cross join added as a;
    return null;
end
$$;

revoke all on function jobq_private.fill_lanes from public;

comment on function jobq_private.fill_lanes is
'Copies what is added to the transitions into every lane.';

create or replace trigger transition_lane
after insert on jobq_private.transition
referencing new table as added
for each statement execute function jobq_private.fill_lanes();

-- Purpose: which member of which new job cannot be read as its type, and why; null when none.
-- Invariant: for batches that read_jobs() could not read: a subtransaction for each member. Raises: nothing.
create or replace function jobq_private.unreadable_member(jobs jsonb)
returns text
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _ordinal bigint;
    _member text;
    _value jsonb;
begin
    for _ordinal, _member, _value in
        select e.n, m.key, m.value
        from jsonb_array_elements(unreadable_member.jobs) with ordinality as e (job, n)
        cross join lateral jsonb_each(e.job) as m
        where m.key not in ('payload', 'metadata')
        order by e.n, m.key
    loop
        begin
            perform jsonb_populate_record(
                null::jobq_private.new_job, jsonb_build_object(_member, _value)
            );
        exception
            when data_exception then
                return format('job %s: %s: %s', _ordinal, _member, sqlerrm);
        end;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.unreadable_member from public;

comment on function jobq_private.unreadable_member is
'Says which member of which new job cannot be read as its type, and why.';

-- Purpose: why a JSON value cannot be stored: the error's code and its detail; null when it
-- can. size is what json_size() says of it.
-- Invariant: what is nested deeper, or holds a number beyond the range of a double, could
-- not be read by clients. strict, for lax looks at nested arrays over and over; for new
-- jobs new_job_problem() does the same inline.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select case
        when size > max_bytes
        then array['PAYLOAD_TOO_LARGE', format(
            '%s bytes, at most %s', size, max_bytes
        )]
        when size > 2 * max_depth and jsonb_path_exists(
            value, format('strict $.**{%s}', max_depth)::jsonpath
        )
        then array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)]
        when size is null
        or size > 308 and not jobq_private.is_wide(value)
        and jobq_private.has_huge_number(value)
        then array['PAYLOAD_INVALID', 'a number beyond the range of a double']
    end
$$;

revoke all on function jobq_private.value_problem from public;

comment on function jobq_private.value_problem is
'Says why a JSON value cannot be stored, as the code of an error and its detail.';

-- Purpose: the live job that has the dedup key, or the new id once the key may be tried again.
-- Invariant: replace cancels a job that waits, and never one that runs: then the new job is
-- refused, but for a schedule's slot, for which the running one stands. debounce changes one that
-- has not begun.
-- Raises: JQ004.
create or replace function jobq_private.yield_dedup_key(
    job jobq_private.new_job, new_id uuid, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
    _dedup text;
begin
    select j.job_id, j.state into job_id, _state
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    order by j.state = 'running' desc, j.dedup is null, j.job_id
    limit 1;

    created := not found;
    if not created then
        select coalesce(job.dedup, s.dedup) into _dedup
        from jobq_private.settings_for(job.kind, job.queue) as s;
        created := _state <> 'running' and _dedup = 'replace';
        if _state = 'running' and _dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, job_id
            ));
        end if;
    end if;
    if not created and _dedup = 'debounce' then
        perform jobq_private.put_off(job_id, job);
    elsif created then
        update jobq_private.job as j
        set
            state = 'cancelled',
            cancel_reason = 'replaced by ' || yield_dedup_key.new_id
        where j.job_id = yield_dedup_key.job_id and j.state in ('blocked', 'queued', 'retrying');
        job_id := yield_dedup_key.new_id;
    end if;
end
$$;

revoke all on function jobq_private.yield_dedup_key from public;

comment on function jobq_private.yield_dedup_key is
'Finds the live job that holds a dedup key, or makes room for the one that replaces it.';

-- Purpose: for tests: as if so much time had passed for jobs that wait, in this transaction.
-- Invariant: moves what they wait for, their expiry and the deadlines of their waits; schedules and leases are
-- left as they are. No role is granted it, so that only who owns the tables can call it. Raises: 22004, 22023.
-- Argument by: how much time, 0 to 36500 days.
-- Returns: how many jobs were moved.
-- Example: select jobq.advance_clock('1 hour');
create or replace function jobq.advance_clock(by interval)
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _moved uuid[];
begin
    if advance_clock.by is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'by');
    elsif advance_clock.by not between '0' and '36500 days' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'by must be from 0 to 36500 days');
    end if;
    update jobq_private.waiter as w set deadline = w.deadline - advance_clock.by;
    with moved as (
        update jobq_private.job as j
        set run_at = j.run_at - advance_clock.by, expires_at = j.expires_at - advance_clock.by
        where j.state in ('queued', 'retrying')
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.call_lanes(coalesce(_moved, '{}'));
    return coalesce(cardinality(_moved), 0);
end
$$;

revoke all on function jobq.advance_clock from public;

comment on function jobq.advance_clock is
'For tests: moves what waiting jobs wait for into the past, as if so much time had gone by.';

-- Purpose: every attempt of every job: those that failed, the one that succeeded, and the
-- one that runs.
-- Invariant: an attempt stands in one of three places, and so here once.
-- Column state: what became of it: succeeded, retrying, dead, cancelled, queued (given
-- back), or running.
-- Column result: the result of the attempt that succeeded.
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

revoke all on jobq.attempt from public;
grant select on jobq.attempt to jobq_reader;

comment on view jobq.attempt is
'Every attempt: state is what it left the job in, or running.';

-- Purpose: the listening session of a client says that it is about to sleep until a job ends.
-- Invariant: LISTEN jobq_events has committed before. The locks (shared, session) are taken
-- before the client looks once more with listen_events(): who ends jobs holds its lock of the
-- archive before it tests these, so that one of the two sees the other. Raises: nothing.
-- Returns: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting_events'), 0);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
end
$$;

revoke all on function jobq.await_events from public;
grant execute on function jobq.await_events to jobq_operator, jobq_reader;

comment on function jobq.await_events is
'Has the listening session notified on jobq_events when any job ends, until end_wait().';

-- Purpose: stop a job: at once while it waits, by asking its worker while it runs.
-- Invariant: the row lock decides between cancel and complete; whoever comes second sees
-- what the first has done. Raises: 22004, 22023, JQ001.
-- Returns: cancelled when it waited, cancel_requested when it runs, already_finished
-- when it has ended.
-- Example: select jobq.cancel(:'waiting', 'ordered twice');
create or replace function jobq.cancel(job_id uuid, reason text default null)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _state text;
    _queue text;
begin
    if cancel.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    elsif length(cancel.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;

    select j.state, j.queue into _state, _queue
    from jobq_private.job as j
    where j.job_id = cancel.job_id
    for update;
    if not found then
        perform jobq.get_job(cancel.job_id);
        return 'already_finished';
    elsif _state = 'running' then
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel.reason)
        where j.job_id = cancel.job_id;
        perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
        perform jobq_private.notify('jobq_cancel', _queue);
        return 'cancel_requested';
    end if;

    update jobq_private.job as j
    set state = 'cancelled', cancel_reason = cancel.reason
    where j.job_id = cancel.job_id;
    perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
    return 'cancelled';
end
$$;

revoke all on function jobq.cancel from public;
grant execute on function jobq.cancel to jobq_producer, jobq_operator;

comment on function jobq.cancel is
'Cancels a waiting job, asks the worker of a running one, and says which.';

-- Purpose: stop many jobs: those that wait at once, those that run by asking their workers.
-- Invariant: each as by cancel(), in one transaction and few statements. Raises: 22004, 22023, JQ001, JQ002.
-- Argument job_ids: these jobs; none may have ended. Filters given beside it narrow it down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument state: only jobs in this state: blocked, queued, retrying or running; null means all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true cancels nothing, and returns the jobs with their states.
-- Argument reason: why; kept with each job, at most 512 characters.
-- Column outcome: cancelled or cancel_requested; at a dry run the state that the job is in.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
begin
    if cancel_many.state not in ('blocked', 'queued', 'retrying', 'running') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'state must be blocked, queued, retrying or running'
        );
    end if;
    _chosen := jobq_private.choose_jobs(
        cancel_many.job_ids, cancel_many.queue, cancel_many.kind, cancel_many.metadata,
        cancel_many.max_jobs, cancel_many.dry_run, cancel_many.reason,
        case
            when cancel_many.state is null then '{blocked,queued,retrying,running}'
            else array[cancel_many.state]
        end
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

revoke all on function jobq.cancel_many from public;
grant execute on function jobq.cancel_many to jobq_operator;

comment on function jobq.cancel_many is
'Cancels many waiting jobs, asks the workers of running ones, and says which.';

-- Purpose: change jobs that wait: when they run or expire, their priority, queue and payload.
-- Invariant: all or none, and only while they wait: a job that a worker takes meanwhile is
-- passed over. The payload of a job that has run once stays what it was, and so does what is a
-- job's concurrency key in it. A job that waits for an event is due at its deadline at the latest.
-- Raises: 22004, 22023, 42501, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument changes: a JSON object with any of run_at (an instant, or `"now"`), priority, queue,
-- payload, timeout and expires_at; what it does not name, or names as null, stays. A job that
-- expires must be due before.
-- Argument job_ids: these jobs; each must wait. Filters given beside it narrow it down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true changes nothing, and returns the jobs that would be.
-- Argument reason: why, for the audit; at most 512 characters.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
    _set jobq_private.new_job;
    _queues text[];
begin
    _chosen := jobq_private.choose_jobs(
        change_many.job_ids, change_many.queue, change_many.kind, change_many.metadata,
        change_many.max_jobs, change_many.dry_run, change_many.reason, '{queued,retrying}'
    );
    _set := jobq_private.check_change(change_many.changes, _chosen);
    perform jobq_private.check_worked(_chosen, _set.queue);
    if not change_many.dry_run then
        if num_nonnulls(_set.queue, _set.run_at, _set.priority) > 0 then
            perform jobq_private.call_left_lanes(
                _chosen, case
                    when num_nonnulls(_set.run_at, _set.priority) = 0 then _set.queue
                end
            );
        end if;
        with changed as (
            update jobq_private.job as j
            set
                run_at = least(coalesce(_set.run_at, j.run_at), (
                    select min(w.deadline)
                    from jobq_private.waiter as w
                    where w.job_id = j.job_id and _set.run_at is not null
                )),
                priority = coalesce(_set.priority, j.priority),
                queue = coalesce(_set.queue, j.queue),
                lane_id = jobq_private.lane_id(
                    coalesce(_set.queue, j.queue), j.concurrency_key
                ),
                payload = coalesce(_set.payload, j.payload),
                timeout = coalesce(_set.timeout, j.timeout),
                expires_at = coalesce(_set.expires_at, j.expires_at)
            where j.job_id = any(_chosen)
            returning j.queue, j.run_at
        )
        select array_agg(distinct c.queue) into _queues
        from changed as c
        where c.run_at < clock_timestamp() + interval '60 s';
        perform jobq_private.call_lanes(_chosen);
        perform jobq_private.wake(coalesce(_queues, '{}'));
        perform jobq_private.record_audit(
            'change ' || array_to_string(array(
                select c.key from jsonb_each(change_many.changes) as c where c.value <> 'null'
            ), ', '),
            c.job_id::text, change_many.reason
        )
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;

revoke all on function jobq.change_many from public;
grant execute on function jobq.change_many to jobq_operator;

comment on function jobq.change_many is
'Changes when waiting jobs run, their priority, queue, timeout or payload, and returns their ids.';

-- Purpose: delete jobs that wait or have ended, with all that is known of them: attempts, log,
-- steps and idempotency keys, which are free again.
-- Invariant: all or none; no job that runs. Clients that wait for one learn that it is not
-- there. Raises: 22004, 22023, 42501, JQ001, JQ002.
-- Argument job_ids: these jobs, waiting or ended; none may run. Filters beside it narrow it
-- down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument state: only jobs in this state: blocked, queued, retrying, succeeded, dead or
-- cancelled; null means those that wait, and with job_ids all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true deletes nothing, and returns the jobs that would be.
-- Argument reason: why, for the audit; at most 512 characters.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _waiting constant text[] := array['blocked', 'queued', 'retrying'];
    _ended constant text[] := array['succeeded', 'dead', 'cancelled'];
    _chosen uuid[];
begin
    if delete_many.state <> all(_waiting || _ended) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'state must be blocked, queued, retrying, succeeded, dead or cancelled'
        );
    end if;
    _chosen := jobq_private.choose_jobs(
        delete_many.job_ids, delete_many.queue, delete_many.kind, delete_many.metadata,
        delete_many.max_jobs, delete_many.dry_run, delete_many.reason,
        case
            when delete_many.state is not null then array[delete_many.state]
            when delete_many.job_ids is not null then _waiting || _ended
            else _waiting
        end
    );
    perform jobq_private.check_worked(_chosen);
    if not delete_many.dry_run then
        perform jobq_private.call_left_lanes(_chosen, null);
        perform jobq_private.forget_jobs(_chosen);
        perform jobq_private.record_audit('delete', c.job_id::text, delete_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;

revoke all on function jobq.delete_many from public;
grant execute on function jobq.delete_many to jobq_operator;

comment on function jobq.delete_many is
'Deletes jobs that wait or have ended, with all that is known of them, and returns their ids.';

-- Purpose: add one job to a queue, in the caller's transaction.
-- Invariant: the job exists when the caller's transaction commits, and not otherwise; an
-- idempotency key or dedup key that is taken yields the job that holds it.
-- Inside: a job without keys and what waits for others, of a kind and queue without limits, goes in by
-- a path of its own, which resolves what settings_for() does, and passes what new_job_problem() surely
-- does. It is the cheaper the fewer functions and operators a job meets: PostgreSQL looks at the
-- privileges for each of an expression when a transaction first comes to that. Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Argument queue: the queue; null means the kind's, else default.
-- Argument priority: higher ones are claimed first, -32768 to 32767; null takes the
-- setting.
-- Argument max_attempts: after how many failed attempts it is dead, 1 to 10000; null
-- takes the setting.
-- Argument timeout: how long an attempt may run, 1 ms to 365 days; null takes the
-- setting.
-- Argument run_at: not before this instant; null means now.
-- Argument expires_at: no attempt begins after this instant: the job is then dead, with the
-- code EXPIRED; after run_at, null for never.
-- Argument after: the jobs that it waits for, live or ended; until then it is blocked.
-- Argument after_failure: when one of them is dead or cancelled: cancel (it is cancelled
-- too), wait (it waits until that one is redriven) or run (it runs when all have ended,
-- however); null means cancel.
-- Argument batch_id: the batch that it becomes a member of, which has not ended.
-- Returns: the id of the job: the new one, or the one that holds the key already.
-- Example: select jobq.enqueue('send_email', '{"to": "ada@example.org"}', run_at => now() + interval '1 h');
create or replace function jobq.enqueue(
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
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job_id uuid;
    _queue text;
    _priority smallint;
    _is_late boolean;
    _of_kind jobq_private.kind;
    _of_queue jobq_private.queue;
    _is_told boolean;
begin
    <<plain>>
    begin
        if num_nonnulls(
            enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout,
            enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup, enqueue.metadata,
            enqueue.concurrency_key, enqueue.expires_at, enqueue.after,
            enqueue.after_failure, enqueue.batch_id
        ) > 0 then
            exit plain when num_nonnulls(
                enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup,
                enqueue.concurrency_key, enqueue.expires_at, enqueue.after,
                enqueue.after_failure, enqueue.batch_id
            ) > 0;
            exit plain when not jobq_private.are_usual(
                enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout,
                enqueue.metadata
            );
            _priority := enqueue.priority;
            _is_late := enqueue.run_at >= now() + interval '60 s';
        end if;
        if (
            pg_column_size(enqueue.payload) <= 600
            and octet_length(enqueue.payload::text)
                <= least(308, 2 * (jobq_private.defaults()).max_payload_depth)
        ) is not true
        then
            exit plain when jobq_private.is_sound(enqueue.payload) is not true;
        end if;
        exit plain when (
            octet_length(enqueue.kind || coalesce(enqueue.queue, '')) <= 128
            and least(enqueue.kind collate "C", enqueue.queue) > '*'
        ) is not true;
        if jobq_private.has_kind_rules() then
            _of_kind := k from jobq_private.kind as k where k.kind = enqueue.kind;
            exit plain when num_nonnulls(
                _of_kind.payload_schema, _of_kind.json_schema, _of_kind.concurrency_key,
                _of_kind.max_running, _of_kind.rate_limit
            ) > 0;
        end if;
        _queue := coalesce(enqueue.queue, _of_kind.queue, 'default');
        if jobq_private.has_queue_rules() then
            _of_queue := q from jobq_private.queue as q where q.queue = _queue;
            exit plain when _of_queue.max_depth is not null;
        end if;
        _job_id := jobq_private.new_id();
        insert into jobq_private.job (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            metadata, delivery_version, keep
        )
        values (
            _job_id, enqueue.kind, enqueue.payload, _queue,
            coalesce(enqueue.run_at, current_timestamp),
            coalesce(
                _priority, _of_kind.priority, _of_queue.priority,
                (jobq_private.defaults()).priority::smallint
            ),
            coalesce(
                enqueue.max_attempts, _of_kind.max_attempts, _of_queue.max_attempts,
                (jobq_private.defaults()).max_attempts
            ),
            coalesce(
                enqueue.timeout, _of_kind.timeout, _of_queue.timeout,
                (jobq_private.defaults()).timeout
            ),
            coalesce(_of_kind.lease, _of_queue.lease, (jobq_private.defaults()).lease),
            coalesce(enqueue.metadata, '{}'), _of_kind.delivery_version, _of_kind.keep
        );
        if _is_late is not true and jobq_private.announce(_queue) then
            _is_told := jobq_private.notify_queue(_queue);
        end if;
        return _job_id;
    end plain;
    return (jobq_private.store_job(row(
        1, enqueue.kind, enqueue.payload, enqueue.queue, enqueue.run_at, enqueue.priority,
        enqueue.max_attempts, enqueue.timeout, enqueue.idempotency_key, enqueue.dedup_key,
        enqueue.dedup, enqueue.metadata, null, null, enqueue.concurrency_key,
        enqueue.expires_at,
        enqueue.after, enqueue.after_failure, enqueue.batch_id, null, null
    )::jobq_private.new_job)).job_id;
end
$$;

revoke all on function jobq.enqueue from public;
grant execute on function jobq.enqueue to jobq_producer;

comment on function jobq.enqueue is
'Adds a job in the caller''s transaction and returns its id, or the id of the job that already holds its key.';

-- Purpose: add many jobs with one call, given as a JSON array of objects whose members
-- are named as the parameters of enqueue().
-- Invariant: all or none. An unknown member is refused. Planned once a session, not at each call.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Members jobs: enqueue
-- Column job_id: the id of the job: the new one, or the one that holds the key already.
-- Example: select * from jobq.enqueue_many('[{"kind": "send_email", "payload": {"to": "ada@example.org"}},
--     {"kind": "send_email", "payload": {"to": "bob@example.org"}, "priority": 5}]');
create or replace function jobq.enqueue_many(jobs jsonb)
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'kind', 'payload', 'queue', 'run_at', 'priority', 'max_attempts', 'timeout',
        'idempotency_key', 'dedup_key', 'dedup', 'metadata',
        'concurrency_key', 'expires_at', 'after', 'after_failure', 'batch_id'
    ];
begin
    return query
    select i.ordinal, i.job_id, i.created
    from jobq_private.insert_jobs(
        jobq_private.read_jobs(enqueue_many.jobs, _known)
    ) as i
    order by i.ordinal;
end
$$;

revoke all on function jobq.enqueue_many from public;
grant execute on function jobq.enqueue_many to jobq_producer;

comment on function jobq.enqueue_many is
'Adds many jobs, all or none, and tells for each one its id and whether it was created.';

-- Purpose: one job, live or archived.
-- Invariant: the archive is looked at from the day before the id's own time, so that older
-- partitions are passed over, and a clock that was set back hides nothing.
-- Raises: 22004, JQ001.
-- Returns: a row of jobq.job.
-- Example: select state, attempts, last_error from jobq.get_job(:'dead');
create or replace function jobq.get_job(job_id uuid)
returns jobq.job
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq.job;
begin
    if get_job.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    end if;
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
    if not found and exists (
        select from jobq_private.schedule as s where s.schedule_id = get_job.job_id
    ) then
        perform jobq_private.raise_error('JOB_IS_RECURRING', format('job_id %s', get_job.job_id));
    elsif not found then
        perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', get_job.job_id));
    end if;
    return _job;
end
$$;

revoke all on function jobq.get_job from public;
grant execute on function jobq.get_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_job is
'Returns one job, live or archived.';

-- Purpose: say why a job is not running, in the words of somebody who looks at 3 a.m.
-- Invariant: reads only; every reason that holds is a row, the first one first.
-- Raises: 22004, JQ001.
-- Returns: a row for each reason that holds, the first one first.
-- Column reason: blocked, held_up, paused, event, key_busy, queue_busy, kind_busy,
-- rate_limited, held, ordered_behind, scheduled, backoff, no_function, no_worker,
-- unknown_kind, slots_lost, waiting, running or finished.
-- Column explanation: the same in words, with the values.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
begin
    if _job.finished_at is not null then
        return query select 'finished', format(
            '%s at %s, after %s%s%s', _job.state, _job.finished_at,
            _job.attempts || case _job.attempts when 1 then ' attempt' else ' attempts' end,
            coalesce(': ' || case
                when _job.state = 'cancelled' and _job.cancel_reason is not null
                    and starts_with(_job.last_error_code, 'PARENT_') is not true
                then _job.cancel_reason
                else coalesce(_job.last_error_code || ' ', '') || _job.last_error
            end, ''),
            case
                when _job.state = 'dead' and _job.last_error_code = 'LEASE_EXPIRED'
                and _job.attempts < _job.max_attempts
                then '; max_expiries of its leases have expired'
            end
        );
        return;
    elsif _job.state = 'running' then
        return query select 'running', format(
            'attempt %s on %s since %s; lease %s %s', _job.attempt, _job.worker,
            _job.claimed_at,
            case when _job.lease_expires_at < clock_timestamp()
                then 'expired (recover() will take it back)' else 'until' end,
            _job.lease_expires_at
        );
        return;
    elsif _job.state = 'blocked' then
        return query select b.* from jobq_private.explain_blocked(_job) as b;
        return;
    end if;

    return query
    select 'paused', format('queue %s since %s%s', q.queue, q.paused_at,
        coalesce(': ' || q.pause_reason, ''))
    from jobq_private.queue as q
    where q.queue = _job.queue and q.paused_at is not null;
    return query
    select 'paused', format('endpoint %s since %s%s', e.endpoint, e.paused_at,
        coalesce(': ' || e.pause_reason, ''))
    from jobq_private.endpoint as e
    where e.endpoint = _job.kind
    and _job.delivery_version is not null
    and e.paused_at is not null
    and e.test_job_id is distinct from _job.job_id;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    return query
    select 'event', format('waits for %s since %s, until %s', w.event, w.since, w.deadline)
    from jobq_private.waiter as w
    where w.job_id = _job.job_id
    and w.deadline > clock_timestamp() and _job.run_at > clock_timestamp()
    order by w.since;
    return query
    select b.reason, b.explanation from jobq_private.explain_barriers(_job.job_id) as b;
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', _job.run_at, _job.run_at - clock_timestamp(),
                case when _job.expires_at <= _job.run_at
                    then format(', but expires before, at %s', _job.expires_at) end);
        return;
    end if;
    return query
    select 'no_function', format(
        'kind %s needs %s', k.kind,
        coalesce(p.problem || '; make it, or declare the kind anew', b.bar)
    )
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
    cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
    where k.kind = _job.kind and k.run is not null and coalesce(p.problem, b.bar) is not null;
    if not exists (
        select from jobq_private.worker as w
        where _job.queue = any (w.queues) and w.seen_at > now() - interval '1 min'
    ) then
        return query select 'no_worker', format(
            'no worker of queue %s was seen in the last minute', _job.queue
        );
    elsif jobq_private.is_unknown(_job.kind, _job.queue) then
        return query select 'unknown_kind', format(
            'no live worker of queue %s has %s kind %s', _job.queue,
            case
                when exists (
                    select from jobq_private.endpoint as e where e.endpoint = _job.kind
                ) then 'driver and keys to deliver'
                else 'a handler for'
            end,
            _job.kind
        );
    end if;
    return query
    select 'slots_lost', format(
        '%s slots of worker %s are held by handlers that hang', w.stuck, w.worker
    )
    from jobq_private.worker as w
    where w.stuck > 0 and _job.queue = any (w.queues) and w.seen_at > now() - interval '1 min'
    order by w.worker;
    return query select 'waiting', format(
        '%s jobs of queue %s are ahead of it',
        case when a.jobs > 10000 then '10000+' else a.jobs::text end, _job.queue
    )
    from jobq_private.jobs_ahead(
        _job.queue, _job.priority, _job.run_at, _job.job_id
    ) as a (jobs);
end
$$;

revoke all on function jobq.explain from public;
grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq.explain is
'Says why a job is not running: blocked by other jobs, paused, an event, a limit, a rate, a hold, scheduled, backoff, no_function, no_worker, unknown_kind, slots_lost, waiting, running or finished.';

-- Purpose: the job that an idempotency key of a kind stands for, or null.
-- Invariant: reads only; a key outlives its job's row only as long as it is retained.
-- Raises: 22004.
-- Returns: the job's id, or null.
-- Example: select jobq.find_job('send_email', 'welcome-ada');
create or replace function jobq.find_job(kind text, idempotency_key text)
returns uuid
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(find_job.kind, find_job.idempotency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind and idempotency_key');
    end if;
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

revoke all on function jobq.find_job from public;
grant execute on function jobq.find_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.find_job is
'Returns the id of the job that an idempotency key of a kind stands for, or null.';

-- Purpose: the attempts of one job, in their order.
-- Invariant: one row for each attempt. Raises: 22004, JQ001.
-- Returns: rows of jobq.attempt.
-- Example: select attempt, state, error from jobq.list_attempts(:'dead');
create or replace function jobq.list_attempts(job_id uuid)
returns setof jobq.attempt
language plpgsql
stable
parallel safe
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

revoke all on function jobq.list_attempts from public;
grant execute on function jobq.list_attempts to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_attempts is
'Returns the attempts of one job, in their order.';

-- Purpose: a page of jobs, newest first. A search that has looked at 100,000 jobs ends with a row
-- whose state is null, if the page is not full: from its job_id on it goes on.
-- Invariant: before is the last id of the page before: ids are ordered by time, so pages
-- are stable while jobs are added. Raises: 22004, 22023.
-- Argument state: only this one; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument before: only jobs made before this one: the last id of the page before.
-- Argument max_jobs: at most so many, 1 to 1000.
-- Returns: rows of jobq.job; the last one may be a mark, of nothing but the job_id that before
-- takes to go on.
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
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if list_jobs.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif list_jobs.max_jobs not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 1000'
        );
    elsif list_jobs.state not in (
        'blocked', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'state must be blocked, queued, running, retrying, succeeded, dead or cancelled');
    end if;
    return query
    select s.*
    from jobq_private.search_jobs(
        case when list_jobs.state is not null then array[list_jobs.state] end,
        list_jobs.kind, list_jobs.queue, null, null, null, null,
        '00000000-0000-0000-0000-000000000000',
        coalesce(list_jobs.before, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), list_jobs.max_jobs
    ) as s;
end
$$;

revoke all on function jobq.list_jobs from public;
grant execute on function jobq.list_jobs to jobq_operator, jobq_reader;

comment on function jobq.list_jobs is
'Returns a page of jobs, newest first; before is the last id of the page before.';

-- Purpose: the log of one job, in its order.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Example: select * from jobq.list_logs(:'running');
create or replace function jobq.list_logs(job_id uuid)
returns table (attempt integer, logged_at timestamptz, level text, message text)
language plpgsql
stable
parallel safe
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

revoke all on function jobq.list_logs from public;
grant execute on function jobq.list_logs to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_logs is
'Returns the log of one job, in its order.';

-- Purpose: a page of the jobs that have ended, in the order of their ends.
-- Invariant: each job once, however commits overtake each other: a page reaches up to the
-- present only when every transaction that was ending jobs then has ended itself (see
-- settled_at). It waits 100 ms for that. A call reads some 20,000 rows, so that a page may be
-- empty and its cursor have moved. It reads the archive alone: a job that leaves no trace, or
-- was run again before, is not there. Raises: 22004, 22023.
-- Argument after: where the page before ended, or the cursor of an event; null begins at since.
-- Argument queues: only jobs of these queues; null means all.
-- Argument kinds: only jobs of these kinds; null means all.
-- Argument since: without after: only jobs that ended at or after this instant; null means now.
-- Argument max_events: at most so many, 1 to 1000.
-- Column events: a JSON array of objects: cursor, job_id, kind, queue, state, attempts,
-- error_code, metadata, batch_id, created_at and finished_at.
-- Column cursor: where the next page begins.
-- Column is_behind: whether there is more to be read at once.
-- Column is_settled: false while an open transaction that has ended jobs keeps back what
-- has ended after them.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    _from timestamptz;
    _job_id uuid := '00000000-0000-0000-0000-000000000000'::uuid;
    _until timestamptz;
    _to timestamptz;
begin
    perform jobq_private.check_listening(after, queues, kinds, since, max_events);
    _from := coalesce(listen_events.since, clock_timestamp());
    if listen_events.after is not null then
        select p.at, p.job_id into _from, _job_id
        from jobq_private.cursor_place(listen_events.after) as p;
    end if;
    _until := jobq_private.settled_at('100 ms');
    listen_events.is_settled := _until is not null;
    _until := greatest(_until, _from);
    _to := jobq_private.event_span(
        _from, _job_id, _until, listen_events.queues, listen_events.kinds, max_events
    );
    select jsonb_agg(jsonb_build_object(
        'cursor', jobq_private.event_cursor(e.finished_at, e.job_id), 'job_id', e.job_id,
        'kind', e.kind, 'queue', e.queue, 'state', e.state, 'attempts', e.attempts,
        'error_code', e.last_error_code, 'metadata', e.metadata, 'batch_id', e.batch_id,
        'created_at', e.created_at, 'finished_at', e.finished_at
    ) order by e.finished_at, e.job_id)
    into listen_events.events
    from (
        select a.*, a.attempt - a.uncounted as attempts
        from jobq_private.job_archive as a
        where a.finished_at >= _from
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (_from, _job_id)
        and (listen_events.queues is null or a.queue = any(listen_events.queues))
        and (listen_events.kinds is null or a.kind = any(listen_events.kinds))
        order by a.finished_at, a.job_id
        limit max_events
    ) as e;
    listen_events.events := coalesce(listen_events.events, '[]');
    listen_events.is_behind := _to < _until
        or jsonb_array_length(listen_events.events) = max_events;
    listen_events.cursor := case
        when jsonb_array_length(listen_events.events) = max_events
        then listen_events.events -> -1 ->> 'cursor'
        when _to > _from
        then jobq_private.event_cursor(_to, '00000000-0000-0000-0000-000000000000')
        else jobq_private.event_cursor(_from, _job_id)
    end;
    return next;
end
$$;

revoke all on function jobq.listen_events from public;
grant execute on function jobq.listen_events to jobq_operator, jobq_reader;

comment on function jobq.listen_events is
'Returns a page of the jobs that have ended after a cursor, each once, by queue or kind.';

-- Purpose: run a dead or cancelled job again.
-- Invariant: its attempts start afresh, while the attempt number goes on as the fencing
-- token. One that has to wait again is blocked: for a job that it waited for, or for
-- the end of its batch.
-- Raises: 22004, JQ001, JQ002, JQ004.
-- Argument latest: whether a delivery is made by its endpoint as it is now, and no longer as it
-- was when the job was made; how many attempts the job has stays.
-- Returns: queued, or blocked where it has to wait again.
-- Example: select jobq.redrive(:'dead');
create or replace function jobq.redrive(job_id uuid, latest boolean default false)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(redrive.job_id);
    _state text;
begin
    if redrive.latest is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'latest');
    elsif _job.state in ('dead', 'cancelled') then
        if redrive.latest then
            perform from jobq_private.job_archive as a
            where a.job_id = _job.job_id and a.finished_at = _job.finished_at
            for update;
            perform from jobq_private.redrive_jobs(
                array[_job.job_id], array[_job.finished_at], true
            );
        else
            update jobq_private.job_archive as a
            set state = 'queued'
            where a.job_id = _job.job_id
            and a.finished_at = _job.finished_at
            and a.state = _job.state;
        end if;
        if found then
            select j.state into _state
            from jobq_private.job as j
            where j.job_id = redrive.job_id;
        else
            perform jobq_private.refuse_redrive(_job);
            -- Somebody else has redriven it meanwhile: say what it is now.
            _job := jobq.get_job(_job.job_id);
        end if;
    end if;
    if _state is null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s; dead and cancelled jobs can be redriven', _job.job_id, _job.state
        ));
    end if;
    return _state;
end
$$;

revoke all on function jobq.redrive from public;
grant execute on function jobq.redrive to jobq_operator;

comment on function jobq.redrive is
'Puts a dead or cancelled job back in its queue, and returns its new state.';

-- Purpose: run many dead jobs again: those of a queue, a kind or an error code that ended
-- within a time.
-- Invariant: bounded, oldest first; a job whose idempotency key or dedup key stands for
-- another job stays where it is, also when that came meanwhile; so does what another call
-- redrives. All go back in few steps, whatever their number. Raises: 22004, 22023.
-- Argument queue: only this queue; null means all.
-- Argument kind: only this kind; null means all.
-- Argument since: only those that ended since this instant.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument max_jobs: at most so many, 1 to 100000.
-- Argument job_ids: only those of these jobs that are dead; null means all.
-- Argument dry_run: whether to return the ids only of those that would go back.
-- Argument latest: whether deliveries are made by their endpoint as it is now, and no longer as it
-- was when the job was made; how many attempts a job has stays.
-- Returns: the ids of the jobs that went back.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _chosen uuid[];
    _ended timestamptz[];
begin
    if num_nulls(
        redrive_many.since, redrive_many.max_jobs, redrive_many.dry_run, redrive_many.latest
    ) > 0 then
        perform jobq_private.raise_error(
            'NULL_ARGUMENT', 'since, max_jobs, dry_run and latest'
        );
    elsif redrive_many.max_jobs not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 100000'
        );
    end if;
    with chosen as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.state = 'dead'
        and a.finished_at >= redrive_many.since
        and (redrive_many.job_ids is null or a.job_id = any(redrive_many.job_ids))
        and (redrive_many.queue is null or a.queue = redrive_many.queue)
        and (redrive_many.kind is null or a.kind = redrive_many.kind)
        and (
            redrive_many.error_code is null or a.last_error_code = redrive_many.error_code
        )
        and (a.dedup is null or not exists (
            select from jobq_private.job as j
            where j.kind = a.kind and j.dedup_key = a.dedup_key and j.dedup is not null
        ))
        and (a.idempotency_key is null or not exists (
            select from jobq_private.idempotency_key as k
            where k.kind = a.kind
            and k.idempotency_key = a.idempotency_key
            and k.job_id <> a.job_id
            and not jobq_private.is_key_free(k.kind, a.queue, k.job_id, k.created_at)
        ))
        order by a.finished_at
        limit redrive_many.max_jobs
        for update of a skip locked
    )
    select array_agg(c.job_id), array_agg(c.finished_at) into _chosen, _ended
    from chosen as c;
    if redrive_many.dry_run then
        return query select c.job_id from unnest(_chosen) as c (job_id);
    elsif _chosen is not null then
        return query
        select r.* from jobq_private.redrive_jobs(_chosen, _ended, redrive_many.latest) as r;
    end if;
end
$$;

revoke all on function jobq.redrive_many from public;
grant execute on function jobq.redrive_many to jobq_operator;

comment on function jobq.redrive_many is
'Puts dead jobs back in their queues and returns their ids.';

-- Purpose: the listening session of a client says that it waits for a job to end.
-- Invariant: LISTEN jobq_ended has committed before. The locks (shared, session) are taken
-- before the job is looked at again, so a completion that commits between the two looks is
-- seen; one that is in flight may not be, so the client looks again within 250 ms.
-- Raises: 22004, JQ001, and then nothing is locked.
-- Returns: true when it has ended already; else a notification on jobq_ended tells its
-- id when it does.
-- Example: select jobq.wait(:'running');
create or replace function jobq.wait(job_id uuid)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
begin
    perform jobq.get_job(wait.job_id);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
    perform pg_advisory_lock_shared(_ending, hashtext(wait.job_id::text) & 1023);
    return (jobq.get_job(wait.job_id)).finished_at is not null;
end
$$;

revoke all on function jobq.wait from public;
grant execute on function jobq.wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.wait is
'Has the listening session notified on jobq_ended when this job ends; true when it has ended already.';

commit;
