-- Purpose: lease runnable jobs of a queue's keys to a worker. The given priority is
-- that of the first job without a key (null if there is none): jobs of higher
-- priorities come first, and keys get half of the slots at that priority. A key whose
-- first job has an excluded kind is skipped.
-- Invariant: reads a bounded number of keys; waits for no lock. Free slots are counted
-- after the limits were locked; the caller has locked the queue's. Keys take turns. A
-- key without a runnable job is closed.
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
            _ids := case when _batch.is_charged or look.has_kind_limits or look.is_limited then array(
                select j.job_id from jobq_private.job as j where j.ctid = any(_batch.jobs)
            ) end;
            return query
            select s.*
            from jobq_private.start_jobs(_batch.jobs, claim_keys.worker, _batch.slots) as s
            where s.lease_expires_at is not null  -- an expired job has died instead
            order by s.run_at, s.job_id;
            _left := _left - cardinality(_batch.jobs);
            if _ids is not null then
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
