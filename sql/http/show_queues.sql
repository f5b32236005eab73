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
    if num_nulls(show_queues.most, show_queues.max_queues) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'most and max_queues');
    elsif show_queues.most not between 1 and 100000
        or show_queues.max_queues not between 1 and 1000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'most must be from 1 to 100000, max_queues from 1 to 1000');
    end if;

    with leased as (
        select s.queue, count(*) as running
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'running' limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    held as (
        select s.queue, count(*) as blocked
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'blocked' limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    ended as (
        select s.queue, count(*) as dead
        from (
            select a.queue from jobq_private.job_archive as a
            where a.state = 'dead'
            order by a.job_id desc
            limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    known as (
        select n.queue
        from (
            select t.queue from jobq_private.waiting_queue as t
            union select l.queue from leased as l
            union select h.queue from held as h
            union select e.queue from ended as e
            union select q.queue from jobq_private.queue as q
            union select unnest(w.queues) from jobq_private.worker as w
        ) as n
        where n.queue is not null
        and (show_queues.first is null or n.queue >= show_queues.first)
        order by n.queue
        limit show_queues.max_queues
    ),
    looked as (
        select w.*
        from jobq_private.look_waiting(
            array(select k.queue from known as k order by k.queue), show_queues.most
        ) as w
    ),
    more as (
        select
            coalesce((select sum(l.running) from leased as l), 0) > show_queues.most as running,
            coalesce((select sum(h.blocked) from held as h), 0) > show_queues.most as blocked,
            coalesce((select sum(e.dead) from ended as e), 0) > show_queues.most as dead
    )
    select json_agg(json_build_object(
        'queue', k.queue,
        'queued', w.queued,
        'scheduled', w.scheduled,
        'retrying', w.retrying,
        'running', coalesce(l.running, 0),
        'dead', coalesce(e.dead, 0),
        'blocked', coalesce(h.blocked, 0),
        'oldest_runnable_ms', jobq_private.milliseconds(
            _now - least(o.run_at, w.oldest)
        ),
        'is_paused', q.paused_at is not null,
        'paused_at', q.paused_at,
        'pause_reason', q.pause_reason,
        'ends_at', w.ends_at,
        'goes_on', array_remove(array[
            case when c.is_cut then 'queued' end,
            case when c.is_cut then 'scheduled' end,
            case when c.is_cut then 'retrying' end,
            case when m.running and l.running > 0 then 'running' end,
            case when m.blocked and h.blocked > 0 then 'blocked' end,
            case when m.dead and e.dead > 0 then 'dead' end
        ], null),
        'is_declared', q.queue is not null,
        'max_depth', q.max_depth,
        'key_max_running', q.key_max_running,
        'is_served', exists (
            select from jobq_private.worker as u
            where k.queue = any (u.queues) and u.seen_at > _now - interval '1 min'
        )
    ) order by k.queue) into _document
    from looked as w
    cross join lateral (select w.queue) as k (queue)
    left join jobq_private.queue as q on q.queue = k.queue
    left join leased as l on l.queue = k.queue
    left join held as h on h.queue = k.queue
    left join ended as e on e.queue = k.queue
    cross join lateral (select w.queued + w.scheduled + w.retrying > w.ends_at) as c (is_cut)
    left join lateral (
        select d.due as run_at
        from jobq_internal.next_due(array[k.queue]) as d (due)
        -- For other queues, the oldest job was read; an open lane has no time.
        where c.is_cut and d.due <= _now and d.due > '0001-01-02 UTC'
    ) as o on true
    cross join more as m;
    return coalesce(_document, '[]');
end
$$;

grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;

comment on function jobq_http.show_queues is
'Returns a summary of the queues as a JSON document. Counts are bounded, so it stays cheap.';
