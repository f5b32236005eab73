-- Deploy jobq:work to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: remember for the session's next claims what this one has learned of a queue, and twice
-- a second move its watermarks.
-- Invariant: a job gets its due_at after its transaction has got its number. So when all
-- transactions have ended that were open at a moment, the candidate, no job due before it can
-- appear any more. Then each watermark moves there, or to the first waiting job, locked or not,
-- because a claim may be rolled back. So claims walk each dead entry of the index a bounded
-- number of times. Callers assign what it returns: an expression costs less than PERFORM.
create or replace function jobq_private.keep_hint(hint jobq_private.claim_hint, now timestamptz)
returns jobq_private.claim_hint language plpgsql
set datestyle = 'ISO'  -- as read_hint()
as $$
declare
    _hint jobq_private.claim_hint := hint;
begin
    if keep_hint.now >= _hint.refresh_at and _hint.priorities is not null then
        if pg_snapshot_xmin(pg_current_snapshot()) >= _hint.horizon then
            _hint.watermarks := array(
                select greatest(p.watermark, least(_hint.candidate, (
                    select j.due_at
                    from jobq_private.job as j
                    where j.queue = _hint.queue
                    and j.state in ('queued', 'retrying')
                    and j.priority = p.priority
                    and j.due_at >= p.watermark
                    order by j.due_at, j.job_id
                    limit 1
                )))
                from unnest(_hint.priorities, _hint.watermarks)
                    with ordinality as p (priority, watermark, n)
                order by p.n
            );
            _hint.horizon := null;
        end if;
        if _hint.horizon is null then
            _hint.candidate := now();
            _hint.horizon := pg_snapshot_xmax(pg_current_snapshot());
        end if;
        _hint.refresh_at := clock_timestamp()
            + greatest(interval '0.5 s', 20 * (clock_timestamp() - keep_hint.now));
    end if;
    return case when set_config(
        'jobq.hint_' || (hashtext(_hint.queue) & 1023), _hint::text, false
    ) is not null then _hint end;
end
$$;

-- Purpose: lock the row of the job that an attempt holds until the commit, and return the row.
-- Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.lock_attempt(job_id uuid, attempt integer)
returns jobq_private.job language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _job jobq_private.job;
begin
    select j.* into _job
    from jobq_private.job as j
    where j.job_id = lock_attempt.job_id
    and j.attempt = lock_attempt.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(lock_attempt.job_id, lock_attempt.attempt);
    end if;
    return _job;
end
$$;

-- Purpose: what this session remembers of a queue, completed by priorities that have come into
-- use.
-- Invariant: forgets all after a minute, and if the clock was put back to before it was noted, so
-- that nothing stays unseen for longer. Probes only between the known priorities, where no dead
-- entries are; a new hint knows none, so its first claim reads the queue from the head.
-- Priorities are null from the 17th on.
create or replace function jobq_private.read_hint(queue text, now timestamptz)
returns jobq_private.claim_hint language plpgsql stable
-- So that times are read as they were written, whatever the session sets.
set datestyle = 'ISO' as $$
declare
    _hint jobq_private.claim_hint := nullif(
        current_setting('jobq.hint_' || (hashtext(read_hint.queue) & 1023), true), ''
    )::jobq_private.claim_hint;
    _new integer[];
begin
    if _hint.queue is distinct from read_hint.queue
        or read_hint.now not between _hint.expires_at - interval '1 min' and _hint.expires_at
    then
        _hint := null;
        _hint.queue := read_hint.queue;
        _hint.expires_at := read_hint.now + interval '1 min';
        _hint.refresh_at := read_hint.now;
        _hint.priorities := '{}';
        _hint.watermarks := '{}';
    end if;
    while _hint.priorities is not null loop
        _new := array(
            select n.priority
            from unnest(32768 || _hint.priorities, _hint.priorities || -32769)
                as g (above, below)
            cross join lateral (
                select j.priority
                from jobq_private.job as j
                where j.queue = read_hint.queue
                and j.state in ('queued', 'retrying')
                and j.due_at is not null
                and j.priority < g.above
                and j.priority > g.below
                order by j.priority desc, j.due_at, j.job_id
                limit 1
            ) as n
        );
        exit when _new = '{}';
        select array_agg(p.priority order by p.priority desc),
            array_agg(p.watermark order by p.priority desc)
        into _hint.priorities, _hint.watermarks
        from (
            select k.priority, k.watermark
            from unnest(_hint.priorities, _hint.watermarks) as k (priority, watermark)
            union all
            select n.priority, '-infinity' from unnest(_new) as n (priority)
        ) as p
        having count(*) <= 16;
    end loop;
    return _hint;
end
$$;

-- Purpose: Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due
-- time and id.
-- Invariant: SKIP LOCKED, so callers neither share a job nor wait. Queues in the order given; in
-- a queue by priority, then by the moment at which a job became due (run_at, or when it was
-- stored or came back if that is later), then by id. Keys take turns. Raises: 22004, 22023.
-- Never: LIMIT_REACHED, since no single job is asked for.
-- Argument queues: names, in the order in which they are claimed from. A name that ends in *,
-- such as tenant-*, stands for all queues that begin like it, in random order.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Argument kinds: only jobs of these kinds; null means all.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null, kinds text[] default null
)
returns setof jobq.claimed_job language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _left integer := claim.max_jobs;
    _plan jobq_private.claim_plan;
    _turn jobq_private.claim_turn;
    _queue text;
begin
    perform jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds, claim.max_limited,
        claim.kinds
    );
    if _left = 0 then
        return;
    end if;
    _plan := jobq_private.on_claim(
        jobq_private.match_queues(claim.queues), claim.except_kinds
    );
    foreach _queue in array _plan.queues loop
        exit when _left = 0 or '*' = any(_plan.except_kinds);
        if _queue = any(_plan.special) then
            _turn := jobq_private.on_queue(
                _queue, claim.worker, _left, claim.max_limited, _plan.except_kinds, claim.kinds
            );
            return query select j.* from unnest(_turn.jobs) as j;
            _left := _left - cardinality(_turn.jobs);
            claim.max_limited := claim.max_limited - _turn.limited;
        else
            _turn.found := jobq_private.find_jobs(
                _queue, _left, _plan.except_kinds, claim.kinds
            );
        end if;
        if _turn.found <> '{}' then
            return query
            select s.* from jobq_private.start_jobs(_turn.found, claim.worker) as s;
            _left := _left - cardinality(_turn.found);
        end if;
    end loop;
end
$$;
grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is 'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due time and id.';

-- Purpose: Returns a leased job to its queue without counting the attempt, and returns the new
-- state.
-- Invariant: the attempt is not counted; a stale one changes nothing. Waits for a transaction
-- that has locked the job. Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: earliest start; null means as soon as possible.
-- Returns: the new state: queued, or cancelled if that was requested.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _state text;
begin
    perform from jobq_private.job as j where j.job_id = release.job_id for update;
    select r.state into _state
    from jobq.release_many(
        array[release.job_id], array[release.attempt], release.run_at
    ) as r;
    if _state is null then
        perform jobq_private.refuse_attempt(release.job_id, release.attempt);
    end if;
    return _state;
end
$$;
grant execute on function jobq.release to jobq_worker;

comment on function jobq.release is 'Returns a leased job to its queue without counting the attempt, and returns the new state.';

commit;
