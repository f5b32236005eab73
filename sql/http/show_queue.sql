-- Purpose: a queue in detail: its limits, held keys, and the jobs that hold keys now;
-- with a key also that key's limits.
-- Invariant: reads only, each part by an index and at most max_rows. An undeclared
-- queue has no limits. Raises: 22004, 22023.
-- Argument concurrency_key: a key to look at, or null.
-- Argument max_rows: at most so many holds, limits and runners, 1 to 1000.
-- Returns: a JSON object: queue, is_declared, paused_at, pause_reason, max_depth, max_running,
-- rate_limit, rate_period_ms, rate_burst, key_max_running, key_rate_limit, key_rate_period_ms,
-- key_rate_burst, ordered, on_dead; holds, an array of objects: concurrency_key and kind (one of
-- them null), until (null: until it is released), reason; limits, an array of objects:
-- concurrency_key, max_running, rate_limit, rate_period_ms, rate_burst; runners, the jobs that
-- take a key's places: concurrency_key, job_id, kind, worker, started_at; closed, the keys that
-- wait for a time: concurrency_key, open_at; and key, null or an object: concurrency_key,
-- max_running, rate_limit, rate_period_ms, rate_burst, held_until (infinity as null), is_held,
-- hold_reason, waiting (10,001 means more), runners.
-- Example: select jobq_http.show_queue('mail', 'customer-7') -> 'key' ->> 'is_held';
create or replace function jobq_http.show_queue(
    queue text, concurrency_key text default null, max_rows integer default 100
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _lane_id constant uuid := jobq_private.lane_id(
        show_queue.queue, show_queue.concurrency_key
    );
begin
    if num_nulls(show_queue.queue, show_queue.max_rows) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and max_rows');
    elsif length(show_queue.queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters'
        );
    elsif show_queue.max_rows not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_rows must be from 1 to 1000'
        );
    end if;
    return (
        select json_build_object(
            'queue', show_queue.queue, 'is_declared', q.queue is not null,
            'paused_at', q.paused_at, 'pause_reason', q.pause_reason,
            'max_depth', q.max_depth, 'max_running', q.max_running,
            'rate_limit', q.rate_limit,
            'rate_period_ms', jobq_private.milliseconds(q.rate_period),
            'rate_burst', q.rate_burst, 'key_max_running', q.key_max_running,
            'key_rate_limit', q.key_rate_limit,
            'key_rate_period_ms', jobq_private.milliseconds(q.key_rate_period),
            'key_rate_burst', q.key_rate_burst,
            'ordered', coalesce(q.ordered, false), 'on_dead', q.on_dead,
            'holds', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', h.concurrency_key, 'kind', h.kind,
                    'until', nullif(h.held_until, 'infinity'), 'reason', h.hold_reason
                ) order by h.held_until desc), '[]')
                from (
                    select g.*
                    from jobq_private.limit_state as g
                    where g.queue = show_queue.queue
                    and g.held_until > _now and g.held_until > '-infinity'
                    order by g.held_until desc
                    limit show_queue.max_rows
                ) as h
            ),
            'limits', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', l.concurrency_key, 'max_running', l.max_running,
                    'rate_limit', l.rate_limit,
                    'rate_period_ms', jobq_private.milliseconds(l.rate_period),
                    'rate_burst', l.rate_burst
                ) order by l.concurrency_key), '[]')
                from (
                    select k.*
                    from jobq_private.key_limit as k
                    where k.queue = show_queue.queue
                    and num_nonnulls(k.max_running, k.rate_limit) > 0
                    order by k.concurrency_key
                    limit show_queue.max_rows
                ) as l
            ),
            'budgets', (
                select coalesce(json_agg(b), '[]')
                from jobq_internal.list_budgets(max_keys => show_queue.max_rows) as b
                where b.scope_type = 'queue' and b.scope = show_queue.queue
                or b.scope_type = 'kind' and exists (
                    select from jobq_private.kind as k
                    where k.kind = b.scope and coalesce(k.queue, 'default') = show_queue.queue
                )
            ),
            'runners', jobq_private.key_runners(show_queue.queue, null, show_queue.max_rows),
            'closed', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', c.concurrency_key, 'open_at', c.open_at
                ) order by c.open_at), '[]')
                from (
                    select l.concurrency_key, l.open_at
                    from jobq_private.lane as l
                    where l.queue = show_queue.queue and l.state <> 'full'
                    and l.open_at > _now and l.open_at < 'infinity'
                    order by l.open_at
                    limit show_queue.max_rows
                ) as c
                where c.concurrency_key is not null
            ),
            'key', case when show_queue.concurrency_key is not null then (
                select json_build_object(
                    'concurrency_key', show_queue.concurrency_key,
                    'max_running', case when q.ordered then 1
                        else coalesce(l.max_running, q.key_max_running) end,
                    'rate_limit', coalesce(l.rate_limit, q.key_rate_limit),
                    'rate_period_ms', jobq_private.milliseconds(
                        case when l.rate_limit is null then q.key_rate_period
                        else l.rate_period end
                    ),
                    'rate_burst', case when l.rate_limit is null then q.key_rate_burst
                        else l.rate_burst end,
                    'is_held', coalesce(g.held_until > _now, false),
                    'held_until', case when g.held_until > _now
                        then nullif(g.held_until, 'infinity') end,
                    'hold_reason', case when g.held_until > _now then g.hold_reason end,
                    'waiting', (
                        select count(*)
                        from (
                            select from jobq_private.job as j
                            where j.queue = show_queue.queue and j.lane_id = _lane_id
                            and j.state in ('queued', 'retrying')
                            limit 10001
                        ) as w
                    ),
                    'runners', jobq_private.key_runners(
                        show_queue.queue, _lane_id, show_queue.max_rows
                    )
                )
                from (values (1)) as one
                left join jobq_private.limit_state as g on g.limit_id = _lane_id
                left join jobq_private.key_limit as l
                on l.queue = show_queue.queue
                and l.concurrency_key = show_queue.concurrency_key
            ) end
        )
        from (values (1)) as one
        left join jobq_private.queue as q on q.queue = show_queue.queue
    );
end
$$;

grant execute on function jobq_http.show_queue to jobq_operator, jobq_reader;

comment on function jobq_http.show_queue is
'Returns the limits of a queue, its held keys, and the jobs that hold keys, as a JSON document.';
