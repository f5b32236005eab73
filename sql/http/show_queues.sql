-- Purpose: an overview of queues by name: the figures of queue_stats(), at a bounded
-- cost.
-- Invariant: reads some 10,000 waiting jobs, the same number of each queue, and uses
-- the rest for long ones: if queued, scheduled and retrying together exceed ends_at,
-- each may be larger. Queues are found by descents of indexes. running, blocked and
-- dead count up to `most` over all queues, dead from the newest; goes_on names those
-- that may be larger.
-- Raises: 22004, 22023.
-- Argument most: maximum of each count, 1 to 100000.
-- Argument max_queues: at most so many queues, 1 to 1000.
-- Argument first: only queues from this name on; null for all.
-- Returns: a JSON array of objects: queue, queued, scheduled, running, retrying, dead,
-- blocked, oldest_runnable_ms, is_paused, paused_at, pause_reason, is_served, ends_at, goes_on, is_declared,
-- key_max_running, max_depth.
-- Example: select jobq_http.show_queues();
create or replace function jobq_http.show_queues(
    most integer default 10000, max_queues integer default 200, first text default null
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _document json;
begin
    perform jobq_private.check_count('most', show_queues.most, 1, 100000);
    perform jobq_private.check_count('max_queues', show_queues.max_queues, 1, 1000);

    with counted as materialized (
        select c.queue, array_agg(c.state order by c.state desc) filter (where c.is_cut) as goes_on,
            coalesce(sum(c.jobs) filter (where c.state = 'running'), 0) as running,
            coalesce(sum(c.jobs) filter (where c.state = 'dead'), 0) as dead,
            coalesce(sum(c.jobs) filter (where c.state = 'blocked'), 0) as blocked
        from jobq_private.count_states(show_queues.most) as c
        group by c.queue
    ),
    known as (
        select n.queue
        from (
            select t.queue from jobq_private.waiting_queue as t
            union select c.queue from counted as c
            union select q.queue from jobq_private.queue as q
            union select unnest(w.queues) from jobq_private.worker as w
        ) as n
        where n.queue is not null
        and (show_queues.first is null or n.queue >= show_queues.first)
        order by n.queue
        limit show_queues.max_queues
    )
    select json_agg(d order by d.queue) into _document
    from (
        select w.queue, w.queued, w.scheduled, w.retrying, coalesce(c.running, 0) as running,
            coalesce(c.dead, 0) as dead, coalesce(c.blocked, 0) as blocked,
            jobq_private.milliseconds(_now - least(o.due, w.oldest)) as oldest_runnable_ms,
            q.paused_at is not null as is_paused, q.paused_at, q.pause_reason, w.ends_at,
            case when i.is_cut then '{queued,scheduled,retrying}' else '{}'::text[] end
                || coalesce(c.goes_on, '{}') as goes_on,
            q.queue is not null as is_declared, q.max_depth, q.key_max_running,
            exists (
                select from jobq_private.worker as u
                where w.queue = any (u.queues) and u.seen_at > _now - interval '1 min'
            ) as is_served
        from jobq_private.look_waiting(
            array(select k.queue from known as k order by k.queue), show_queues.most
        ) as w
        left join jobq_private.queue as q on q.queue = w.queue
        left join counted as c on c.queue = w.queue
        cross join lateral (select w.queued + w.scheduled + w.retrying > w.ends_at) as i (is_cut)
        left join lateral (
            select n.due
            from jobq_internal.next_due(array[w.queue]) as n (due)
            -- For other queues, the oldest job was read; an open lane has no time.
            where i.is_cut and n.due <= _now and n.due > '0001-01-02 UTC'
        ) as o on true
    ) as d;
    return coalesce(_document, '[]');
end
$$;

grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;

comment on function jobq_http.show_queues is
'Returns a summary of the queues as a JSON document. Counts are bounded, so it stays cheap.';
