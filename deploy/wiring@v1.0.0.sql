-- Deploy jobq:wiring to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: the highest priority below this one at which a job without a key is due;
-- null for none.
-- Invariant: one index probe for each priority that the session remembers, from where
-- its jobs begin, or a scan if these are too many. Callers pin the planner's settings.
create or replace function jobq_private.due_priority(
    queue text, below integer, except_kinds text[], kinds text[]
)
returns integer
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint jobq_private.claim_hint := jobq_private.read_hint(due_priority.queue, _now);
    _priority integer;
begin
    if _hint.priorities is null then
        return (
            select j.priority
            from jobq_private.job as j
            where j.queue = due_priority.queue
            and j.state in ('queued', 'retrying')
            and j.priority < due_priority.below
            and j.due_at <= _now
            and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
            and (due_priority.kinds is null or j.kind = any(due_priority.kinds))
            order by j.priority desc, j.due_at, j.job_id
            limit 1
        );
    end if;
    -- the highest come first; a loop over them stops at one
    select p.priority into _priority
    from unnest(_hint.priorities, _hint.watermarks) as p (priority, watermark)
    cross join lateral (
        select
        from jobq_private.job as j
        where j.queue = due_priority.queue
        and j.state in ('queued', 'retrying')
        and j.priority = p.priority
        and j.due_at between p.watermark and _now
        and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
        and (due_priority.kinds is null or j.kind = any(due_priority.kinds))
        limit 1
    ) as f
    where p.priority < due_priority.below
    limit 1;
    if _priority is null and _now >= _hint.refresh_at then
        _hint := jobq_private.keep_hint(_hint, _now);
    end if;
    return _priority;
end
$$;

-- Purpose: find jobs without a key at this priority that the limits of their queue let start.
-- Invariant: jobs that a changed limit or a hold moves under a key make room for those behind them,
-- as often as moves_left says; at zero, the next claim continues here. The caller starts the jobs.
create or replace function jobq_private.find_passing(
    queue text, max_jobs integer, except_kinds text[], kinds text[], priority integer,
    look jobq_private.queue_look, inout moves_left integer, out jobs tid[]
)
language plpgsql
as $$
declare
    _left integer := max_jobs;
    _width integer := 1;
    _found tid[];
    _moved integer;
begin
    jobs := '{}';
    loop
        _found := jobq_private.find_jobs(
            queue, greatest(_left, _width), except_kinds, kinds, priority
        );
        _moved := cardinality(_found);
        if look.has_kind_limits and _found <> '{}' then
            select m.jobs into _found from jobq_private.move_jobs(_found, null) as m;
        end if;
        _moved := _moved - cardinality(_found);
        if cardinality(_found) > _left then
            -- Else the session's next claims would begin behind these, for half a second.
            perform set_config('jobq.hint_' || (hashtext(queue) & 1023), '', false);
            _found := _found[:_left];
        end if;
        if look.is_limited and _found <> '{}' then
            select p.jobs into _found from jobq_private.pass_limits(queue, _found, null, look) as p;
            perform jobq_private.charge(
                array(select j.job_id from jobq_private.job as j where j.ctid = any(_found)), true
            );
        end if;
        jobs := jobs || _found;
        _left := _left - cardinality(_found);
        exit when _left = 0 or _moved = 0;
        _width := least(100, 2 * _width);
        moves_left := moves_left - 1;
        exit when moves_left = 0;
    end loop;
end
$$;

-- Purpose: when the limits of a whole queue let a job start: infinity while it is paused or nothing
-- says when, null if nothing holds it up.
create or replace function jobq_private.opening(queue text, now timestamptz)
returns timestamptz
language plpgsql
stable
as $$
begin
    return (
        select case
            when q.paused_at is not null then timestamptz 'infinity'
            when r.max_starts <= 0 then coalesce(r.opens_at, 'infinity')
        end
        from jobq_private.queue as q
        left join lateral (
            select l.max_starts, l.opens_at
            from jobq_private.check_limits(array[row(
                jobq_private.limit_id(q.queue, null, null), q.queue, null, null
            )::jobq_private.scope], opening.now) as l
            where num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
        ) as r on true
        where q.queue = opening.queue
    );
end
$$;

-- Purpose: those of many queues in which a claim may find something, in their order.
-- Invariant: if no key has work anywhere, the queues are not asked for theirs.
create or replace function jobq_private.with_work(queues text[])
returns text[]
language plpgsql
as $$
declare
    _has_keys constant boolean := exists (select from jobq_private.waiting_key as w);
begin
    return array(
        select q.queue
        from unnest(with_work.queues) with ordinality as q (queue, n)
        where (
            select true
            from jobq_private.job as j
            where j.queue = q.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            limit 1
        )
        or _has_keys and (
            exists (
                select from jobq_private.waiting_key as w
                where w.queue = q.queue and w.state <> 'full'
            )
            or exists (
                select from jobq_private.waiting_key as w
                where w.queue = q.queue and w.full_kind is not null
            )
        )
        order by q.n
    );
end
$$;

-- Purpose: the hook on_claim() of a full installation: do first what has to follow from jobs that
-- ended. Queues with limits or waiting keys are special, and all queues while a kind has limits.
-- Invariant: see sql/work/private/on_claim.sql. One statement reads all that a claim must know before
-- it looks into its queues. Of more than 16 queues, those with work are asked.
create or replace function jobq_private.on_claim(queues text[], except_kinds text[])
returns jobq_private.claim_plan
language plpgsql
as $$
declare
    _plan jobq_private.claim_plan := row(queues, null, null);
    _is_pending boolean;
begin
    for _pass in 1 .. 2 loop
        if cardinality(queues) > 16 then
            _plan.queues := jobq_private.with_work(queues);
        end if;
        select
            exists (select from jobq_private.pending as l where l.due_at <= clock_timestamp()),
            array(
                select q.queue
                from unnest(_plan.queues) as q (queue)
                -- A limit keeps the planner from reading whole tables instead, for a hash.
                where (
                    select true from jobq_private.waiting_key as w
                    where w.queue = q.queue and w.state <> 'full'
                    limit 1
                )
                or (
                    select true from jobq_private.waiting_key as w
                    where w.queue = q.queue and w.full_kind is not null
                    limit 1
                )
                or (
                    select true from jobq_private.limit_hold as h
                    where h.queue = q.queue
                    limit 1
                )
                or (
                    select true from jobq_private.queue as d
                    where d.queue = q.queue
                    and num_nonnulls(d.paused_at, d.max_running, d.rate_limit, d.budget) > 0
                    limit 1
                )
                or exists (
                    select from jobq_private.kind as k
                    where num_nonnulls(
                        k.max_running, k.rate_limit, k.budget, k.key_max_running,
                        k.key_rate_limit, k.key_budget, k.ordered
                    ) > 0
                )
                -- a snapshot that is older than the last change of limits sees none of them
                or current_setting('transaction_isolation') <> 'read committed'
            ),
            nullif(on_claim.except_kinds || array(
                select p.kind from jobq_private.paused_kind as p
            ), '{}')
        into _is_pending, _plan.special, _plan.except_kinds;
        exit when not _is_pending or _pass = 2;
        perform jobq_private.resolve();
    end loop;
    return _plan;
end
$$;

-- Purpose: the hook on_end() of a full installation: slots of limits become free, and
-- those who wait for the jobs, and their batches, are noted to be looked at.
-- Invariant: see sql/job/private/on_end.sql. Takes no lock that others wait for, so the
-- transaction can be long. The next claim of any transaction resolves the rows of pending,
-- else maintain(). Signals, which have no index by job, stay for the retention of events.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void
language plpgsql
as $$
declare
    _limited jobq_private.ending[];
    _awaited jobq_private.ending[];
    _gone uuid[];
begin
    select
        array_agg(e) filter (where e.state is not null and num_nonnulls(e.key_id, e.slot) > 0),
        array_agg(e) filter (
            where e.state in ('succeeded', 'dead', 'cancelled')
            and (e.is_awaited or e.batch_id is not null)
        ),
        array_agg(e.job_id) filter (where e.is_gone)
    into _limited, _awaited, _gone
    from unnest(endings) as e;
    if _limited <> '{}' then
        perform jobq_private.leave_keys(_limited);
    end if;
    if _awaited <> '{}' then
        -- Edges that are committed later have a row of their own: see settle_edges().
        insert into jobq_private.pending (about, id)
        select 'parent', e.job_id
        from unnest(_awaited) as e
        where e.is_awaited and exists (
            select from jobq_private.edge as d where d.parent = e.job_id and d.is_open
        )
        union all
        select 'call', e.job_id
        from unnest(_awaited) as e
        where exists (
            select from jobq_private.edge as d
            where d.parent = e.job_id and d.after_failure in ('call', 'detach')
        )
        union all
        select 'caller', e.job_id
        from unnest(_awaited) as e
        where e.state = 'cancelled' and exists (
            select from jobq_private.edge as d
            where d.child = e.job_id and d.after_failure = 'call'
        )
        union all
        select distinct 'batch', e.batch_id from unnest(_awaited) as e where e.batch_id is not null;
        perform jobq_private.wake(array(select distinct e.queue from unnest(_awaited) as e));
    end if;
    if _gone <> '{}' then
        with steps as (
            delete from jobq_private.step as s where s.job_id = any(_gone)
        ),
        chunks as (
            delete from jobq_private.stream_chunk as c where c.job_id = any(_gone)
        )
        delete from jobq_private.waiter as w where w.job_id = any(_gone);
    end if;
end
$$;

-- Purpose: the hook on_forget() of a full installation: jobs for which others wait or
-- have waited, and members of batches.
-- Invariant: see sql/job/private/on_forget.sql. Who does not see all queues may not see
-- who needs a job: it is then put off by the least time, for others to look.
create or replace function jobq_private.on_forget(
    first timestamptz, last timestamptz, job_ids uuid[], max_jobs integer
)
returns table (job_id uuid, needed_until timestamptz)
language plpgsql
stable
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
begin
    if on_forget.job_ids is null then
        return query
        select n, timestamptz 'infinity'
        from jobq_private.needed_jobs(
            on_forget.first::date, (now() - (select g.retention from jobq_private.setting as g))::date
        ) as n
        limit on_forget.max_jobs;
        return;
    end if;
    return query
    select n.job_id, n.needed_until
    from (
        select a.job_id, case
            when _sees_all
            then jobq_private.needed_until(a.job_id, a.batch_id, a.finished_at)
            when a.batch_id is not null
                or exists (select from jobq_private.edge as e where e.parent = a.job_id)
            then '-infinity'
        end as needed_until
        from jobq_private.job_archive as a
        where a.job_id = any(on_forget.job_ids)
        and a.finished_at between on_forget.first and on_forget.last
    ) as n
    where n.needed_until is not null;
end
$$;

-- Purpose: the hook on_move() of a full installation: jobs go back under their limits, and what
-- depends on them is looked at again.
create or replace function jobq_private.on_move(job_ids uuid[])
returns void
language plpgsql
as $$
begin
    if job_ids <> '{}' then
        perform jobq_private.open_keys(job_ids, array(
            select distinct j.key_id from jobq_private.job as j where j.job_id = any(job_ids)
        ));
        perform jobq_private.follow_redriven(job_ids);
        perform jobq_private.release_dead_keys(job_ids);
    end if;
end
$$;

-- Purpose: give limits their turn in a claim.
-- Invariant: replaces the core's hook of this name. Jobs with keys and others take turns by priority:
-- claim_keys() starts those above the priority of the others, and half of what is
-- wanted at it. What is found without a key is counted here, and started by the claim.
-- Nothing of a lower priority starts before.
create or replace function jobq_private.on_queue(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn
language plpgsql
as $$
declare
    _turn jobq_private.claim_turn;
    _look jobq_private.queue_look;
    _left integer := max_jobs;
    _priority integer := 32768;
    _found tid[];
    _moves_left integer := 50;
begin
    _look := jobq_private.enter_queue(queue, clock_timestamp());
    _turn := row('{}', '{}', null, 0);
    if not (
        coalesce(_look.is_paused or _look.is_limited, false) or _look.has_keys
        or _look.has_kind_limits
    ) then
        _turn.found := jobq_private.find_jobs(queue, max_jobs, except_kinds, kinds);
        return _turn;
    elsif _look.is_paused then
        return _turn;
    elsif _look.is_limited then
        _left := least(max_jobs, max_limited, _look.max_starts);
    end if;
    while _left > 0 and _priority is not null loop
        _priority := jobq_private.due_priority(queue, _priority, except_kinds, kinds);
        if _look.has_keys and max_limited - _turn.limited is distinct from 0 then
            _turn.jobs := _turn.jobs || jobq_private.claim_keys(
                queue, worker, least(_left, max_limited - cardinality(_turn.jobs)), _priority,
                _look, on_queue.kinds, on_queue.except_kinds
            );
        end if;
        _left := _left - cardinality(_turn.jobs) + _turn.limited;
        _turn.limited := cardinality(_turn.jobs);
        if _priority is not null and _left > 0 then
            select f.jobs, f.moves_left into _found, _moves_left
            from jobq_private.find_passing(
                queue, _left, except_kinds, kinds, _priority, _look, _moves_left
            ) as f;
            _turn.found := _turn.found || _found;
            _left := case when _moves_left > 0 then _left - cardinality(_found) else 0 end;
        end if;
    end loop;
    if _look.is_limited then
        _turn.slots := array_fill(1, array[cardinality(_turn.found)]);
        _turn.limited := cardinality(_turn.jobs) + cardinality(_turn.found);
    end if;
    return _turn;
end
$$;

-- Purpose: the hook on_redrive() of a full installation: jobs wait again for what they waited for.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[]
language sql
as $$
    select jobq_private.wait_again(job_ids)
$$;

-- Purpose: let one job start that the table's trigger asks for.
-- Invariant: replaces the core's hook of this name. A delivery to a paused endpoint is put aside.
-- What no claim has counted is checked and counted here, under the locks of all limits that it
-- passes. The time of its start is read between: no end of what made room is later, and what it is
-- charged counts from no earlier. Raises: JQ011.
create or replace function jobq_private.on_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job
language plpgsql
as $$
begin
    if job.delivery_version is not null
        and jobq_private.park_delivery(job.job_id, job.kind, job.run_at)
    then
        return null;
    elsif not is_claim then
        if job.concurrency_key is not null then
            -- its kind may have got or lost limits for each key since it was stored
            job.key_id := jobq_private.key_of(job.queue, job.kind, job.concurrency_key, false);
        end if;
        select t.slot, t.started_at into job.slot, job.claimed_at
        from jobq_private.take_slot(job) as t;
    end if;
    return job;
end
$$;

-- Purpose: store new jobs that use more than the core: they come under their limit, and
-- are linked to what they wait for.
-- Invariant: replaces the core's hook of this name. Raises: 22004, 22023, JQ001, JQ002,
-- JQ010.
create or replace function jobq_private.on_store(jobs jobq_private.new_job[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    _jobs jobq_private.new_job[] := on_store.jobs;
    _linked jobq_private.new_job[];
    _stored uuid[];
    _has_links boolean := false;
    _has_keys boolean := false;
begin
    for _n in 1 .. cardinality(_jobs) loop
        _has_links := _has_links or num_nonnulls(_jobs[_n].after, _jobs[_n].batch_id) > 0;
        if _jobs[_n].concurrency_key is not null or _jobs[_n].is_limited then
            _jobs[_n].key_id := jobq_private.key_of(
                _jobs[_n].queue, _jobs[_n].kind, _jobs[_n].concurrency_key, _jobs[_n].is_limited
            );
            _has_keys := true;
        end if;
    end loop;
    _stored := jobq_private.insert_jobs(_jobs);
    if _has_links then
        _linked := array(
            select j
            from unnest(_jobs) as j
            where num_nonnulls(j.after, j.batch_id) > 0
            and (
                cardinality(_stored) = cardinality(_jobs)
                or j.job_id in (select s.job_id from unnest(_stored) as s (job_id))  -- hashed
            )
        );
        perform jobq_private.attach_jobs(_linked);
    end if;
    if _has_keys then
        perform jobq_private.open_keys(_stored);
    end if;
    return _stored;
end
$$;

-- Purpose: the hook on_wait() of a full installation: jobs with keys are due, too; limits
-- of whole queues hold jobs up, and what jobs that have ended may release is due for all
-- queues.
-- Invariant: see sql/work/private/on_wait.sql. One more probe for each queue's keys. If
-- no key has work anywhere, many queues are not asked for theirs.
create or replace function jobq_private.on_wait(queues text[], except_kinds text[])
returns timestamptz
language plpgsql
stable
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _has_keys constant boolean := cardinality(queues) <= 16
        or exists (select from jobq_private.waiting_key as w);
begin
    return least(
        (
            select min(greatest(d.due_at, p.opens_at))
            from unnest(on_wait.queues) as q (queue)
            cross join lateral (
                select least(
                    jobq_private.first_due(q.queue, on_wait.except_kinds),
                    case when _has_keys then jobq_private.next_key(q.queue, on_wait.except_kinds) end
                )
                offset 0  -- evaluated once
            ) as d (due_at)
            left join lateral jobq_private.opening(q.queue, _now) as p (opens_at)
                on d.due_at is not null
            where d.due_at is not null
        ),
        (
            select min(greatest(
                nullif(l.due_at, '-infinity'),
                -- Somebody may be at it, in a transaction that lasts.
                _now + least(
                    greatest((_now - greatest(l.due_at, l.created_at)) / 256, interval '10 ms'),
                    interval '1 s'
                )
            ))
            from jobq_private.pending as l
            where jobq_private.worked_queues() is null
        )
    );
end
$$;

-- Purpose: raise the error for an id that names no job: that of a schedule has one of
-- its own.
-- Invariant: replaces the core's function of this name. Raises: JQ001.
create or replace function jobq_private.refuse_missing(job_id uuid)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    if exists (
        select from jobq_private.schedule as s where s.schedule_id = refuse_missing.job_id
    ) then
        perform jobq_private.raise_error('JOB_IS_RECURRING', format('job_id %s', job_id));
    end if;
    perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', job_id));
end
$$;

commit;
