-- Purpose: how many jobs wait in each queue, at a bounded cost.
-- Invariant: reads up to `most` jobs of each of five queues, and fewer of more queues,
-- but 100 of each. For longer queues, which are not is_exact, returns the last count of
-- count_waiting(), or the number just read if larger.
create or replace function jobq_private.waiting_counts(
    most integer default 10000, first text default null, max_queues integer default null
)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    is_exact boolean
)
language plpgsql
stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _queues constant text[] := array(
        select w.queue from jobq_private.waiting_queue as w
        where first is null or w.queue >= first
        order by w.queue
        limit max_queues
    );
    _ends_at constant integer := least(
        most, greatest(100, 5 * most / greatest(1, cardinality(_queues)))
    );
begin
    return query
    select
        q.queue,
        case when e.is_exact then s.queued else greatest(s.queued, c.queued) end,
        case when e.is_exact then s.scheduled else greatest(s.scheduled, c.scheduled) end,
        case when e.is_exact then s.retrying else greatest(s.retrying, c.retrying) end,
        case when e.is_exact then s.oldest else least(s.oldest, d.due) end,
        e.is_exact
    from unnest(_queues) as q (queue)
    cross join lateral jobq_private.count_head(q.queue, _ends_at, _now) as s
    cross join lateral (select s.seen <= _ends_at) as e (is_exact)
    left join jobq_private.waiting_count as c on c.queue = q.queue and not e.is_exact
    left join lateral (
        select n.due
        from jobq_private.next_due(array[q.queue]) as n (due)
        where not e.is_exact and n.due <= _now and n.due > '0001-01-02 UTC'
    ) as d on true;
end
$$;
