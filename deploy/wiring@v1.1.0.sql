-- Deploy jobq:wiring to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: find jobs without a key at this priority that the limits of their queue let start.
-- Invariant: jobs that a changed limit or a hold moves under a key make room for those behind
-- them, as often as moves_left says; at zero, the next claim continues here. The caller starts
-- the jobs; if the queue is limited, it charges them, and then looks here again.
create or replace function jobq_private.find_passing(
    queue text, max_jobs integer, except_kinds text[], kinds text[], priority integer,
    look jobq_private.queue_look, inout moves_left integer, out jobs tid[]
)
language plpgsql as $$
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
        end if;
        jobs := jobs || _found;
        _left := _left - cardinality(_found);
        exit when _left = 0 or _moved = 0 or look.is_limited and jobs <> '{}';
        _width := least(100, 2 * _width);
        moves_left := moves_left - 1;
        exit when moves_left = 0;
    end loop;
end
$$;

-- Purpose: the hook on_end() of a full installation: slots of limits become free, and
-- those who wait for the jobs, and their batches, are noted to be looked at.
-- Invariant: see sql/job/private/on_end.sql. Takes no lock that others wait for, so the
-- transaction can be long. The next claim of any transaction resolves the rows of pending,
-- else maintain(). Signals, which have no index by job, stay for the retention of events.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void language plpgsql
-- All joins, since callers may allow themselves only some.
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off set enable_hashjoin = on set enable_mergejoin = on
set enable_nestloop = on as $$
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
        -- Edges that are committed later have a row of their own: see settle_edges(). The limits keep
        -- the planner from reading all edges for a join, whatever the statistics say.
        insert into jobq_private.pending (about, id)
        select 'parent', e.job_id
        from unnest(_awaited) as e
        where e.is_awaited and (
            select true from jobq_private.edge as d
            where d.parent = e.job_id and d.is_open
            limit 1
        )
        union all
        select 'call', e.job_id
        from unnest(_awaited) as e
        where (
            select true from jobq_private.edge as d
            where d.parent = e.job_id and d.after_failure in ('call', 'detach')
            limit 1
        )
        union all
        select 'caller', e.job_id
        from unnest(_awaited) as e
        where e.state = 'cancelled' and (
            select true from jobq_private.edge as d
            where d.child = e.job_id and d.after_failure = 'call'
            limit 1
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

-- Purpose: give limits their turn in a claim.
-- Invariant: replaces the core's hook of this name. Jobs with keys and others take turns by
-- priority: claim_keys() starts those above the priority of the others, and half of what is
-- wanted at it. What is found without a key is started by the claim, or here if the queue is
-- limited. Nothing of a lower priority starts before.
create or replace function jobq_private.on_queue(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn language plpgsql as $$
declare
    _turn jobq_private.claim_turn;
    _look jobq_private.queue_look;
    _left integer := max_jobs;
    _priority integer := 32768;
    _found tid[];
    _started jobq.claimed_job[];
    _moves_left integer := 50;
begin
    _look := jobq_private.enter_queue(queue, clock_timestamp());
    _turn := row('{}', '{}', null, 0);
    if _look.is_paused then
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
            if _look.is_limited and _found <> '{}' then
                -- what expires or is postponed instead of started costs nothing
                _started := array(
                    select s from jobq_private.start_jobs(
                        _found, worker, array_fill(1::smallint, array[cardinality(_found)])
                    ) as s
                );
                perform jobq_private.charge(array(select s.job_id from unnest(_started) as s), true);
                _turn.jobs := _turn.jobs || _started;
                _turn.limited := cardinality(_turn.jobs);
                _priority := _priority + 1;
            else
                _turn.found := _turn.found || _found;
            end if;
            _left := case when _moves_left > 0 then _left - cardinality(_found) else 0 end;
        end if;
    end loop;
    return _turn;
end
$$;

-- Purpose: the hook on_redrive() of a full installation: jobs wait again for parents, or for the
-- end of a batch that has not started them yet.
-- Invariant: see sql/job/private/on_redrive.sql. Reopens edges that a death had closed: those of
-- blocked children of these jobs, and those between these jobs and live parents. Locks blocked
-- children in the order of ids, so that none is released meanwhile. Their edges may look open: a
-- transaction that has closed one holds the child. Skips children that the caller may not see,
-- which is harmless if they have run. Batches with these jobs as members or callbacks do not end
-- until the commit; for a batch that has ended, the callback is checked again. "is true" prevents
-- the use of the index of blocked jobs, which would scan the array for each of them.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[] language plpgsql set jit = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(on_redrive.job_ids) as i (job_id)
        order by i.job_id
        limit 1
    );
    _waiting uuid[];
    _called uuid[];
begin
    _waiting := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.child
            from jobq_private.edge as e
            where e.parent = any(on_redrive.job_ids) and e.after_failure = 'run'
        ))
        and (j.state = 'blocked') is true
        order by j.job_id
        for no key update
    );
    with may_be_closed as materialized (
        select e.ctid, e.child
        from jobq_private.edge as e
        where e.parent = any(on_redrive.job_ids) and e.after_failure = 'run'
        union
        select e.ctid, e.child
        from jobq_private.edge as e
        join jobq_private.job as p on p.job_id = e.parent
        where e.child = any(on_redrive.job_ids)
        and e.after_failure = 'run' and not e.is_open
    )
    update jobq_private.edge as e
    set is_open = true
    from may_be_closed as c
    where e.ctid = c.ctid
    and (
        c.child in (select w from unnest(_waiting) as w)
        or c.child in (select i from unnest(on_redrive.job_ids) as i)
        or (not _sees_all and jobq_private.state_of(c.child) is null)
    );
    -- As in join_batches(), but an ended batch is allowed.
    with batch as materialized (
        select b.on_success, b.on_end, b.on_first_death
        from jobq_private.batch as b
        where b.batch_id = any(array(
            select a.batch_id
            from jobq_private.job_archive as a
            where a.job_id = any(on_redrive.job_ids)
            and a.finished_at >= _since
            and a.batch_id is not null
        ))
        or b.on_success = any(on_redrive.job_ids)
        or b.on_end = any(on_redrive.job_ids)
        or b.on_first_death = any(on_redrive.job_ids)
        order by b.batch_id
        for key share
    )
    select array_agg(c.job_id) into _called
    from batch as b
    cross join lateral unnest(array[b.on_success, b.on_end, b.on_first_death]) as c (job_id)
    where not exists (
        select from jobq_private.job_archive as a where a.job_id = c.job_id and a.attempt > 0
    );
    return array(
        select w.job_id
        from unnest(on_redrive.job_ids) as w (job_id)
        where w.job_id in (select c from unnest(_called) as c)
        or exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    );
end
$$;

commit;
