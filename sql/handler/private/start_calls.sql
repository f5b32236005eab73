-- Purpose: start jobs of these kinds in a queue, with and without keys, by priority,
-- for claim_calls().
-- Invariant: SKIP LOCKED. Updates locked rows by ctid, since nobody else can move them.
-- The caller has entered the queue.
create or replace function jobq_private.start_calls(
    queue text, kinds text[], wanted integer, look jobq_private.queue_look
)
returns table (job_id uuid, attempt integer, kind text, payload jsonb)
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _left integer := wanted;
    _has_keys boolean := look.has_keys;
    _priority integer;
    _found tid[];
    _moved integer;
    _taken integer;
begin
    while _left > 0 loop
        _priority := (
            select j.priority
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.due_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.priority desc, j.due_at, j.job_id
            limit 1
            for update skip locked
        );
        if _has_keys then
            return query
            select c.job_id, c.attempt, c.kind, c.payload
            from jobq_private.claim_keys(
                start_calls.queue, session_user, _left, _priority, look, kinds
            ) as c;
            get diagnostics _taken = row_count;
            _left := _left - _taken;
        end if;
        exit when _priority is null or _left = 0;
        _found := array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.priority = _priority
            and j.due_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.due_at, j.job_id
            limit _left
            for update skip locked
        );
        select p.jobs, p.moved into _found, _moved
        from jobq_private.pass_queue(queue, _found, _left, look) as p;
        exit when _found = '{}' and _moved = 0;
        _has_keys := _has_keys or look.has_kind_limits;
        return query
        with taken as (
            update jobq_private.job as j
            set
                state = 'running', worker = session_user,
                previous_state = j.state, attempt = j.attempt + 1,
                transition_slot = pg_backend_pid() & 1023,
                claimed_at = _now, lease_expires_at = _now + j.lease,
                slot = case when look.is_limited then 1 end
            where j.ctid = any(_found)
            returning j.job_id, j.attempt, j.kind, j.payload, j.run_at
        )
        select t.job_id, t.attempt, t.kind, t.payload
        from taken as t
        order by t.run_at, t.job_id;
        get diagnostics _taken = row_count;
        _left := _left - _taken;
    end loop;
end
$$;
