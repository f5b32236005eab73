-- Purpose: lease up to max_jobs runnable jobs to a worker.
-- Invariant: SKIP LOCKED, so no two callers get one job and none waits. Queues in the
-- order given; within a queue by priority, then run_at, then id. Jobs due later cost nothing.
-- What waits for jobs that this transaction has ended is released first; what waits for those
-- that others have ended, when there is room left, once a statement.
-- Inside: where an index scan can skip, no lane waits, and the head of the queue is not known to
-- be slow, one scan of job_ready_idx finds what is due at any priority. If that is of more than
-- one, and in all other cases, each priority in use is one range, from next_mark() to now. Where
-- much lies dead before, other sessions are told at once where this one ends: share_front(); and
-- the session's own next claim, where this one did not begin at what others have left. What
-- is locked is updated by its ctid, since nobody else can move it. A row that others have
-- claimed since this snapshot would be locked, found to run, and kept from its worker until
-- the commit: so what was touched by a transaction that may still have been open when the
-- look began, one of the last 1000, is passed over, and taken by a second pass where the
-- first comes back short and has met such a row: then touched_age() was called, once. No lane
-- says that the limits have been looked at.
-- Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits: a worker that claims ahead takes no places for what it does not yet run. null
-- means any number.
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now timestamptz;
    _left integer := claim.max_jobs;
    _queue text;
    _mark jobq_private.claim_mark;
    _run_at timestamptz;
    _job_id uuid;
    -- whether all priorities are looked through at once
    _is_whole boolean;
    _is_second boolean;
    _found tid[];
    -- what a look at all priorities has locked, before the claim went by priority
    _locked tid[];
    _look jobq_private.queue_look;
    _entered integer;
    _spare integer;
    _limited integer;
    _taken integer;
begin
    if (
        claim.max_jobs between 0 and 10000 and length(claim.worker) between 1 and 256
        and array_ndims(claim.queues) = 1 and array_position(claim.queues, null) is null
        and claim.except_kinds is null
    ) is not true then
        perform jobq_private.check_claim(
            claim.queues, claim.worker, claim.max_jobs, claim.except_kinds
        );
    end if;

    if current_setting('jobq.looks', true) = 'on' then
        perform jobq_private.resolve();
    end if;

    foreach _queue in array case
        when cardinality(claim.queues) <= 16 then claim.queues
        else jobq_private.claimable_queues(claim.queues)
    end loop
        _look := jobq_private.look_at(_queue, clock_timestamp());
        continue when _look.is_paused;
        _mark := null;
        if _look.is_limited then
            _spare := _left - jobq_private.enter_queue(
                _queue, least(_left, claim.max_limited), clock_timestamp()
            );
            _left := _left - _spare;
            _entered := _left;
            _limited := claim.max_limited;
        end if;
        _now := clock_timestamp();
        _is_whole := jobq_private.can_skip() and _look.has_lanes is not true
            and coalesce(
                current_setting('jobq.mark_' || (hashtext(_queue) & 1023), true), ''
            ) = '';
        <<marks>>
        while _left > 0 loop
            if not _is_whole then
                _mark := jobq_private.next_mark(_queue, _mark);
                if _look.has_lanes and coalesce(claim.max_limited, 1) > 0 then
                    return query
                    select c.*
                    from jobq_private.claim_lanes(
                        _queue, claim.worker, least(_left, claim.max_limited), _mark.priority,
                        _look.is_limited, _look.has_gates, except_kinds => claim.except_kinds
                    ) as c;
                    get diagnostics _taken = row_count;
                    _left := _left - _taken;
                    claim.max_limited := claim.max_limited - _taken;
                    _run_at := null;
                end if;
                exit when _mark.priority is null or _left = 0;
            end if;
            foreach _is_second in array array[false, true] loop
                exit when _is_second and current_setting('jobq.touched', true) is distinct from 'on';
                if _is_whole then
                    _found := array(
                        select j.ctid
                        from jobq_private.job as j
                        where j.queue = _queue
                        and j.state in ('queued', 'retrying')
                        and j.lane_id is null
                        and j.run_at <= _now
                        and (claim.except_kinds is null or j.kind <> all(claim.except_kinds))
                        and (
                            _is_second
                            or j.xmax = '0'
                            or j.xmax = pg_current_xact_id_if_assigned()::xid
                            or age(j.xmax) > (
                                select jobq_private.touched_age(pg_current_snapshot())
                            )
                        )
                        order by j.priority desc, j.run_at, j.job_id
                        limit _left
                        for update skip locked
                    );
                    if (
                            cardinality(_found) > 1
                            or current_setting('jobq.touched', true) is not distinct from 'on'
                        )
                        and jobq_private.is_overtaken(
                            _queue, _found[cardinality(_found)], _now, claim.except_kinds
                        )
                    then
                        _is_whole := false;
                        _locked := _found;
                        _mark := null;
                        continue marks;
                    end if;
                    if not _is_second
                        and clock_timestamp() - _now
                        > interval '0.2 ms' + cardinality(_found) * interval '0.01 ms'
                    then
                        _mark := jobq_private.next_mark(_queue, null);
                        _mark.took := clock_timestamp() - _now;
                        _mark.is_shared := false;
                        _mark.is_slow := true;
                    end if;
                else
                    _found := jobq_private.find_jobs(
                        _queue, _mark, _now, _left, claim.except_kinds, _is_second, _locked
                    );
                end if;
                continue when _found = '{}';
                if _mark.is_slow then
                    if claim.except_kinds is null then
                        perform jobq_private.share_front(
                            _queue, _found[cardinality(_found)],
                            least(_mark.look_at, _now + interval '100 ms')
                        );
                    end if;
                    if not _mark.is_shared then
                        select j.run_at, j.job_id into _run_at, _job_id
                        from jobq_private.job as j
                        where j.ctid = _found[cardinality(_found)];
                    end if;
                end if;
                if _look.has_gates then
                    _found := jobq_private.divert_jobs(_found);
                    exit marks when _found = '{}';
                end if;

                return query
                with taken as (
                    update jobq_private.job as j
                    set
                        state = 'running', worker = claim.worker,
                        previous_state = j.state, attempt = j.attempt + 1,
                        lane = null,
                        claimed_at = _now, lease_expires_at = _now + j.lease,
                        place = case when _look.is_limited then 1 end
                    where j.ctid = any(_found)
                    returning
                        j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                        j.max_attempts, j.timeout, j.lease_expires_at,
                        j.run_at::timestamptz, j.created_at, j.idempotency_key, j.lease,
                        j.delivery_version,
                        j.is_awaited or j.place is not null or j.batch_id is not null
                )
                select t.* from taken as t
                where t.lease_expires_at is not null
                order by t.run_at, t.job_id;
                _left := _left - cardinality(_found);
                exit marks when _left = 0;
            end loop;
            exit when _is_whole;
        end loop;
        if _mark.is_slow and not _mark.is_shared then
            perform jobq_private.keep_mark(_mark, _run_at, _job_id);
            _run_at := null;
        end if;
        if _look.is_limited then
            perform jobq_private.charge_queue(_queue, _entered - _left);
            claim.max_limited := _limited - (_entered - _left);
            _left := _left + _spare;
        end if;
        if _left = 0 then
            return;
        end if;
    end loop;
    if not _look.is_used then
        return;
    end if;
    if exists (
            select from jobq_private.look as l where l.look_at <= clock_timestamp()
        )
        and current_setting('jobq.resolved', true) is distinct from statement_timestamp()::text
        and jobq_private.resolve(patience => '2 s') > 0
    then
        return query select * from jobq.claim(
            claim.queues, claim.worker, _left, claim.max_limited, claim.except_kinds
        );
    end if;
end
$$;

revoke all on function jobq.claim from public;
grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is
'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, run_at and id.';
