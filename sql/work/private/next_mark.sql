-- Purpose: where a claim goes on in a queue: at the first call (mark null) where the session's
-- last claim ended, while keep_mark() says so; else at the head of the next lower priority
-- that has a job due.
-- Invariant: reads one entry of job_ready_idx, where that is due, and how long it took tells
-- what lies dead before it. priority is null when none is left. Raises: nothing.
create or replace function jobq_private.next_mark(queue text, mark jobq_private.claim_mark)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
as $$
declare
    _started constant timestamptz := clock_timestamp();
    _mark jobq_private.claim_mark := mark;
    _run_at timestamptz;
begin
    if mark.queue is null then
        _mark := nullif(
            current_setting('jobq.mark_' || (hashtext(next_mark.queue) & 1023), true), ''
        )::jobq_private.claim_mark;
        if _mark.queue = next_mark.queue and _mark.look_at > _started then
            return _mark;
        end if;
        _mark := row(
            next_mark.queue, 32768, '-infinity', null, '0', coalesce(_mark.slow_looks, 0),
            null, true
        );
    elsif not mark.is_look then
        _mark.priority := 32768;
        _mark.is_look := true;
    end if;

    select j.priority, j.run_at into _mark.priority, _run_at
    from jobq_private.job as j
    where j.queue = next_mark.queue
    and j.state in ('queued', 'retrying')
    and j.lane_id is null
    and j.priority < _mark.priority
    order by j.priority desc, j.run_at
    limit 1;
    if _run_at > _started then
        _mark.priority := jobq_private.due_priority(next_mark.queue, _mark.priority, _started);
    end if;
    _mark.run_at := '-infinity';
    _mark.job_id := '00000000-0000-0000-0000-000000000000';
    _mark.took := _mark.took + (clock_timestamp() - _started);
    return _mark;
end
$$;

revoke all on function jobq_private.next_mark from public;

comment on function jobq_private.next_mark is
'Says where a claim goes on in a queue.';
