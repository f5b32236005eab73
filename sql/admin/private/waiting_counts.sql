-- Purpose: how many jobs wait in each queue, at a bounded cost.
-- Invariant: reads 100 jobs of each queue, then of longer ones up to `most` each, and
-- 5 * `most` of all together. For longer queues, which are not is_exact, returns the last
-- count of count_waiting(), or the number just read if larger. A queue is_exact if no
-- more jobs than ends_at wait. due is when the first job could be claimed.
create or replace function jobq_private.waiting_counts(
    most integer default 10000, first text default null, max_queues integer default null
)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    due timestamptz, is_exact boolean, ends_at integer
)
language plpgsql stable set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _short constant integer := least(most, 100);
begin
    return query
    with head as materialized (
        select q.queue, h.*
        from (
            select w.queue from jobq_private.waiting_queue as w
            where first is null or w.queue >= first
            order by w.queue
            limit max_queues
        ) as q
        cross join lateral jobq_private.count_head(q.queue, _short, _now) as h
    ),
    share as materialized (
        select least(most, greatest(_short, (
            5 * most - coalesce(sum(h.seen) filter (where h.seen <= _short), 0)
        ) / greatest(1, count(*) filter (where h.seen > _short))))::integer as ends_at
        from head as h
    ),
    looked as (
        select h.* from head as h, share as a where h.seen <= _short or a.ends_at = _short
        union all
        select h.queue, l.*
        from head as h
        cross join share as a
        cross join lateral jobq_private.count_head(h.queue, a.ends_at, _now) as l
        where h.seen > _short and a.ends_at > _short
    )
    select
        s.queue, greatest(s.queued, c.queued), greatest(s.scheduled, c.scheduled),
        greatest(s.retrying, c.retrying), least(s.oldest, f.due), least(s.due, f.due), e.is_exact,
        a.ends_at
    from looked as s
    cross join share as a
    cross join lateral (select s.seen <= a.ends_at) as e (is_exact)
    left join jobq_private.waiting_count as c on c.queue = s.queue and not e.is_exact
    left join lateral (
        select jobq_private.first_due(s.queue, null) as due
        where not e.is_exact
        offset 0  -- so that it is called only for these queues, and once
    ) as f on f.due <= _now;
end
$$;
