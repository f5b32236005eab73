-- Purpose: Returns the limits of a queue, its held keys, and the jobs that hold keys,
-- as a JSON document.
-- Invariant: reads only, each part by an index and at most max_rows. An undeclared
-- queue has no limits. Raises: 22004, 22023.
-- Argument concurrency_key: a key to look at, or null.
-- Argument max_rows: at most so many holds, limits and runners, 1 to 1000.
-- Returns: a JSON object: queue, is_declared, paused_at, pause_reason, max_depth, max_running,
-- rate_limit, rate_period_ms, rate_burst, key_max_running, key_rate_limit, key_rate_period_ms,
-- key_rate_burst, ordered, on_dead; holds, an array of objects: concurrency_key and kind (one of
-- them null), until (null: until it is released), reason; limits, an array of objects:
-- concurrency_key, max_running, rate_limit, rate_period_ms, rate_burst; runners, the jobs that
-- take a key's slots: concurrency_key, job_id, kind, worker, started_at; closed, the keys that
-- wait for a time: concurrency_key, open_at; and key, null or an object: concurrency_key,
-- max_running, rate_limit, rate_period_ms, rate_burst, held_until (infinity as null), is_held,
-- hold_reason, waiting (10,001 means more), runners, and kinds, an array of objects: kind,
-- max_running, rate_limit, rate_period_ms, rate_burst, of each key of the kind in all queues,
-- which apply to its jobs instead.
-- Example: select jobq_http.show_queue('mail', 'customer-7') -> 'key' ->> 'is_held';
create or replace function jobq_http.show_queue(
    queue text, concurrency_key text default null, max_rows integer default 100
)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    perform jobq_private.check_count('max_rows', show_queue.max_rows, 1, 1000);
    perform jobq_private.check_given('queue', num_nulls(show_queue.queue));
    perform jobq_private.check_argument(case
        when length(show_queue.queue) not between 1 and 128 then 'queue must have 1 to 128 characters'
    end);
    return (
        select row_to_json(d)
        from (
            select show_queue.queue, q.queue is not null as is_declared,
                q.paused_at, q.pause_reason, q.max_depth, q.max_running, q.rate_limit,
                jobq_private.milliseconds(q.rate_period) as rate_period_ms, q.rate_burst,
                q.key_max_running, q.key_rate_limit,
                jobq_private.milliseconds(q.key_rate_period) as key_rate_period_ms,
                q.key_rate_burst, coalesce(q.ordered, false) as ordered, q.on_dead,
                (
                    select coalesce(json_agg(h), '[]')
                    from (
                        select g.concurrency_key, g.kind,
                            nullif(g.held_until, 'infinity') as until, g.reason
                        from (
                            select distinct on (o.limit_id) o.*
                            from jobq_private.limit_hold as o
                            where o.queue = show_queue.queue and o.held_until > _now
                            order by o.limit_id, o.held_until desc, o.hold_id desc
                        ) as g
                        order by g.held_until desc
                        limit show_queue.max_rows
                    ) as h
                ) as holds,
                (
                    select coalesce(json_agg(l), '[]')
                    from (
                        select k.concurrency_key, k.max_running, k.rate_limit,
                            jobq_private.milliseconds(k.rate_period) as rate_period_ms, k.rate_burst
                        from jobq_private.key_limit as k
                        where k.queue = show_queue.queue
                        and num_nonnulls(k.max_running, k.rate_limit) > 0
                        order by k.concurrency_key
                        limit show_queue.max_rows
                    ) as l
                ) as limits,
                (
                    select coalesce(json_agg(b), '[]')
                    from jobq_internal.list_budgets(max_keys => show_queue.max_rows) as b
                    where b.scope_type = 'queue' and b.scope = show_queue.queue
                    or b.scope_type = 'kind' and exists (
                        select from jobq_private.kind as k
                        where k.kind = b.scope and coalesce(k.queue, 'default') = show_queue.queue
                    )
                ) as budgets,
                jobq_private.key_runners(show_queue.queue, null, show_queue.max_rows) as runners,
                (
                    select coalesce(json_agg(c), '[]')
                    from (
                        select l.concurrency_key, l.open_at
                        from jobq_private.waiting_key as l
                        where l.queue = show_queue.queue and l.state <> 'full'
                        and l.open_at > _now and l.open_at < 'infinity'
                        order by l.open_at
                        limit show_queue.max_rows
                    ) as c
                    where c.concurrency_key is not null
                ) as closed,
                case when show_queue.concurrency_key is not null then jobq_private.key_document(
                    show_queue.queue, show_queue.concurrency_key, show_queue.max_rows
                ) end as key
            from (values (1)) as one
            left join jobq_private.queue as q on q.queue = show_queue.queue
        ) as d
    );
end
$$;
grant execute on function jobq_http.show_queue to jobq_operator, jobq_reader;
