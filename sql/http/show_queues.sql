-- Purpose: Returns a summary of the queues as a JSON document. Counts are bounded, so
-- it stays cheap.
-- Invariant: the figures of queue_stats(), bounded; goes_on names those that may be larger.
-- Queues are found by descents of indexes. Raises: 22004, 22023.
-- Argument max_queues: at most so many queues, 1 to 1000.
-- Argument first: only queues from this name on; null for all.
-- Returns: a JSON array of objects: queue, queued, scheduled, running, retrying, dead, blocked,
-- oldest_runnable_ms, is_paused, paused_at, pause_reason, is_served, ends_at, goes_on,
-- is_declared, key_max_running, max_depth.
-- Example: select jobq_http.show_queues();
create or replace function jobq_http.show_queues(
    most integer default 10000, max_queues integer default 200, first text default null
)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    _now constant timestamptz := clock_timestamp();  -- equal waits stay equal
begin
    perform jobq_private.check_count('most', show_queues.most, 1, 100000);
    perform jobq_private.check_count('max_queues', show_queues.max_queues, 1, 1000);
    return (
        select coalesce(json_agg(d order by d.queue), '[]')
        from (
            select f.queue, f.queued, f.scheduled, f.retrying, f.running, f.dead, f.blocked,
                jobq_private.milliseconds(_now - f.oldest) as oldest_runnable_ms,
                q.paused_at is not null as is_paused, q.paused_at, q.pause_reason,
                f.ends_at, f.goes_on, q.queue is not null as is_declared, q.max_depth,
                q.key_max_running, exists (
                    select from jobq_private.live_worker as u
                    where jobq_private.serves(u.queues, f.queue)
                ) as is_served
            from jobq_private.queue_figures(
                show_queues.most, show_queues.first, show_queues.max_queues
            ) as f
            left join jobq_private.queue as q on q.queue = f.queue
        ) as d
    );
end
$$;
grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;
