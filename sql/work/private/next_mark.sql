-- Purpose: where a claim goes on in a queue: at the first call (mark null), where the looks at
-- its head are slow, at the front that other sessions share, or where the session's
-- last claim from a mark of its own ended, while keep_mark() says so; else at the head of the
-- next lower priority that has a job due.
-- Invariant: reads one entry of job_ready_idx, where that is due, and how long it took tells
-- what lies dead before it; a claim behind much begins at that entry. priority is null when none
-- is left. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.next_mark(queue text, mark jobq_private.claim_mark)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _started constant timestamptz := clock_timestamp();
    _setting constant text := nullif(
        current_setting('jobq.mark_' || (hashtext(next_mark.queue) & 1023), true), ''
    );
    _kept jobq_private.claim_mark;
    _priority integer := 32768;
    _run_at timestamptz;
    _job_id uuid;
    _took interval;
    _front jobq_private.claim_mark;
begin
    if mark.is_look then
        _priority := mark.priority;
    elsif _setting is not null then
        if mark.queue is null then
            _front := jobq_private.shared_front(next_mark.queue, _started);
            if _front.queue is not null then
                return _front;
            end if;
        end if;
        _kept := _setting::jobq_private.claim_mark;
        if _kept.queue <> next_mark.queue then
            _kept := null;
        elsif mark.queue is null and _kept.look_at > _started then
            return _kept;
        end if;
    end if;

    select j.priority, j.run_at, j.job_id into _priority, _run_at, _job_id
    from jobq_private.job as j
    where j.queue = next_mark.queue
    and j.state in ('queued', 'retrying')
    and j.lane_id is null
    and j.priority < _priority
    order by j.priority desc, j.run_at, j.job_id
    limit 1;
    if _run_at > _started then
        _priority := jobq_private.due_priority(next_mark.queue, _priority, _started);
        _run_at := null;
    end if;
    _took := coalesce(mark.took, '0') + (clock_timestamp() - _started);
    return row(
        next_mark.queue, _priority,
        coalesce(case when _took > interval '0.2 ms' then _run_at end, '-infinity'), _job_id,
        _took, coalesce(mark.slow_looks, _kept.slow_looks, 0), null, true, false,
        _took > interval '0.2 ms' or coalesce(mark.slow_looks, _kept.slow_looks) > 0
    )::jobq_private.claim_mark;
end
$$;

revoke all on function jobq_private.next_mark from public;

comment on function jobq_private.next_mark is
'Says where a claim goes on in a queue.';
