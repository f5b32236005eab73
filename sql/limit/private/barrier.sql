-- Purpose: the first of the gates that a job passes, or its lane, that lets it not start now; null
-- when it may start. Reason is held, rate_limited, ordered_behind, key_busy, kind_busy or queue_busy.
-- Invariant: a look, no promise, for who does not hold the gates. Raises: nothing.
create or replace function jobq_private.barrier(
    job jobq_private.job, now timestamptz,
    out reason text, out scope text, out open_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gate record;
    _rule jobq_private.lane_rule;
begin
    for _gate in
        select j.*, g.held_until, g.hold_reason, g.passed_until, g.head_job_id
        from jobq_private.job_gates(job) as j
        left join jobq_private.gate as g on g.gate_id = j.gate_id
    loop
        scope := _gate.scope;
        if _gate.held_until > barrier.now then
            reason := 'held';
            scope := concat_ws(': ', scope, _gate.hold_reason);
            open_at := _gate.held_until;
            return;
        end if;
        open_at := jobq_private.token_at(
            _gate.passed_until, _gate.spacing, _gate.burst, barrier.now
        );
        if open_at is not null then
            reason := 'rate_limited';
            return;
        end if;
        if _gate.is_ordered and exists (
            select from jobq_private.job as h
            where h.job_id = _gate.head_job_id and h.job_id <> job.job_id
            and (h.lane_id = job.lane_id or _gate.gate_id <> job.lane_id)
        ) then
            reason := 'ordered_behind';
            scope := format('%s: job %s', scope, _gate.head_job_id);
            return;
        end if;
    end loop;
    open_at := null;
    if (select r.room from jobq_private.gate_room(job.queue, null, barrier.now) as r) = 0 then
        reason := 'queue_busy';
        scope := 'queue ' || job.queue;
        return;
    elsif (select r.room from jobq_private.gate_room(null, job.kind, barrier.now) as r) = 0 then
        reason := 'kind_busy';
        scope := 'kind ' || job.kind;
        return;
    end if;
    select r.* into _rule from jobq_private.key_rule(job.kind) as r;
    if _rule.max_running is not null and job.concurrency_key is not null and (
        select r.room from jobq_private.key_room(job.kind, job.concurrency_key, barrier.now) as r
    ) = 0 then
        reason := 'key_busy';
        scope := format('kind %s, concurrency_key %s: %s', job.kind, job.concurrency_key,
            _rule.max_running);
        return;
    end if;
    select r.* into _rule
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r;
    if exists (
        select from jobq_private.free_places(job.queue, job.lane_id, _rule.max_running, 1)
            as p (places)
        where p.places = '{}'
    ) then
        reason := 'key_busy';
        scope := format('queue %s, concurrency_key %s: %s', job.queue, job.concurrency_key,
            _rule.max_running);
        return;
    end if;
    scope := null;
end
$$;

revoke all on function jobq_private.barrier from public;

comment on function jobq_private.barrier is
'What lets a job not start now, if anything does.';
