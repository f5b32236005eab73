-- Purpose: Returns a page of jobs that have ended after a cursor, each once, by queue or kind.
-- Invariant: each job once, in whatever order transactions commit: a page reaches the
-- present only when every transaction that was ending jobs has ended (see settled_at).
-- It waits 100 ms for that. A call reads some 20,000 rows, so a page may be empty
-- although its cursor has moved. Reads only the archive: omits jobs whose records are
-- not kept, and jobs that were redriven before. Raises: 22004, 22023.
-- Argument after: cursor of the previous page or of an event; null starts at since.
-- Argument queues: only jobs of these queues; null means all.
-- Argument kinds: only jobs of these kinds; null means all.
-- Argument since: without after: only jobs that ended at or after this time; null means now.
-- Argument max_events: maximum number, 1 to 1000.
-- Column events: a JSON array of objects: cursor, job_id, kind, queue, state, attempts,
-- error_code, metadata, batch_id, created_at and finished_at.
-- Column cursor: cursor for the next page.
-- Column is_behind: whether more can be read now.
-- Column is_settled: false while an open transaction that has ended jobs delays later events.
-- Example: select * from jobq.listen_events(kinds => '{send_email}', since => now() - interval '1 h');
create or replace function jobq.listen_events(
    after text default null, queues text[] default null, kinds text[] default null,
    since timestamptz default null, max_events integer default 100
)
returns table (events jsonb, cursor text, is_behind boolean, is_settled boolean) language plpgsql
security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
set plan_cache_mode = force_custom_plan as $$
declare
    _from timestamptz;
    _job_id uuid;
    _until timestamptz;
    _to timestamptz;
    _is_full boolean;
begin
    select s.at, s.job_id into _from, _job_id
    from jobq_private.event_start(after, queues, kinds, since, max_events) as s;
    _until := jobq_private.settled_at('100 ms');
    listen_events.is_settled := _until is not null;
    _until := greatest(_until, _from);
    _to := jobq_private.event_span(
        _from, _job_id, _until, listen_events.queues, listen_events.kinds, max_events
    );
    select coalesce(jsonb_agg(e order by e.finished_at, e.job_id), '[]') into listen_events.events
    from (
        select jobq_private.event_cursor(a.finished_at, a.job_id) as cursor, a.job_id, a.kind,
            a.queue, a.state, a.attempt - a.uncounted as attempts, a.last_error_code as error_code,
            a.metadata, a.batch_id, a.created_at, a.finished_at
        from jobq_private.job_archive as a
        where a.finished_at >= _from
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (_from, _job_id)
        and (listen_events.queues is null or a.queue = any(listen_events.queues))
        and (listen_events.kinds is null or a.kind = any(listen_events.kinds))
        order by a.finished_at, a.job_id
        limit max_events
    ) as e;
    _is_full := jsonb_array_length(listen_events.events) = max_events;
    listen_events.is_behind := _to < _until or _is_full;
    listen_events.cursor := case
        when _is_full then listen_events.events -> -1 ->> 'cursor'
        when _to > _from
        then jobq_private.event_cursor(_to, '00000000-0000-0000-0000-000000000000')
        else jobq_private.event_cursor(_from, _job_id)
    end;
    return next;
end
$$;
grant execute on function jobq.listen_events to jobq_operator, jobq_reader;
