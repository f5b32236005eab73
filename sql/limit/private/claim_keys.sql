-- Purpose: lease runnable jobs of a queue's keys to a worker: those of a higher
-- priority than the given one, at which a claim finds jobs without a key, and half of
-- what it wants at that priority; all if there are none (null). A key is left if
-- another kind goes first.
-- Invariant: bounded in keys; waits for nobody. What may start is counted after the
-- limits were locked; the caller has locked the queue's. Keys take turns. A key in
-- which nothing was found is closed.
create or replace function jobq_private.claim_keys(
    queue text, worker text, max_jobs integer, priority integer, look jobq_private.queue_look,
    kinds text[] default null, except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
as $$
declare
    _has_limits constant boolean := coalesce(look.has_limits or look.has_kind_limits, false);
    _left integer := max_jobs;
    _priority integer := 32768;
    _width integer;
    _keys jobq_private.waiting_key[];
    _picked integer;
    _batch jobq_private.key_batch;
    _closed bigint;
    _ids uuid[];
    _started_at timestamptz;
begin
    perform jobq_private.open_due_keys(queue, clock_timestamp());
    loop
        _priority := (
            select max(w.priority)
            from jobq_private.waiting_key as w
            where w.queue = claim_keys.queue and w.state = 'open' and w.priority < _priority
        );
        exit when _left = 0 or _priority is null or _priority < claim_keys.priority;
        if _priority = claim_keys.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _keys := jobq_private.pick_keys(queue, _priority, _width, _has_limits);
            exit when _keys is null;
            _picked := cardinality(_keys);
            _keys := array_remove(_keys, null);
            _batch := jobq_private.take_jobs(
                _keys, clock_timestamp(), _left, _has_limits, kinds, except_kinds
            );
            _closed := 0;
            if look.has_kind_limits or look.is_limited or exists (
                select from unnest(_keys) as k where k.kind is not null
            ) then
                select p.jobs, p.slots, p.closed into _batch.jobs, _batch.slots, _closed
                from jobq_private.pass_limits(queue, _batch.jobs, _batch.slots, look) as p;
            end if;
            _ids := array(
                select j.job_id from jobq_private.job as j
                where _has_limits and j.ctid = any(_batch.jobs)
            );
            _started_at := clock_timestamp();
            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim_keys.worker,
                    previous_state = j.state, attempt = j.attempt + 1,
                    transition_slot = pg_backend_pid() & 1023,
                    claimed_at = _started_at, lease_expires_at = _started_at + j.lease,
                    slot = t.slot
                from unnest(_batch.jobs, _batch.slots) as t (job, slot)
                where j.ctid = t.job
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at::timestamptz,
                    j.created_at, j.idempotency_key, j.lease, j.delivery_version,
                    j.is_awaited or j.slot is not null or j.batch_id is not null
            )
            select t.* from taken as t
            where t.lease_expires_at is not null
            order by t.run_at, t.job_id;
            _left := _left - cardinality(_batch.jobs);
            if _ids <> '{}' then
                perform jobq_private.charge_jobs(_ids, coalesce(look.is_limited, false));
            end if;
            _closed := _closed + jobq_private.close_keys(_batch.idle);
            -- Look further if others have locked the keys, or jobs of other kinds are first.
            exit when _batch.jobs = '{}' and _closed = 0 and (
                _picked < _width
                or 2 * (_picked - cardinality(_keys) + _batch.skipped) < _picked
            );
            _width := least(100, case when _batch.jobs = '{}' then _width * 2 else _left end);
        end loop;
    end loop;
end
$$;
