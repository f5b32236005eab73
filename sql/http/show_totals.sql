-- Purpose: how many jobs of all queues wait, run and are dead, at a bounded cost.
-- Invariant: counts are exact up to `most`. Reads at most some 10,000 waiting jobs of
-- 2,000 queues; for longer queues it uses the last count of maintain().
-- Raises: 22004, 22023.
-- Argument most: maximum of each count, 1 to 100000.
-- Returns: a JSON object: queued, scheduled, retrying, running, blocked, dead, queues,
-- paused (how many queues are), oldest_runnable_ms, goes_on (an array with the names of
-- counts that may be larger).
-- Example: select jobq_http.show_totals() ->> 'dead';
create or replace function jobq_http.show_totals(most integer default 10000)
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
    _most_queues constant integer := 2000;
    _all text[];
    _document json;
begin
    perform jobq_private.check_count('most', show_totals.most, 1, 100000);
    _all := array(select w.queue from jobq_private.waiting_queue as w order by w.queue);

    with looked as (
        select
            w.queue, w.queued + w.scheduled + w.retrying > w.ends_at as is_cut, w.oldest,
            greatest(w.queued, c.queued) as queued,
            greatest(w.scheduled, c.scheduled) as scheduled,
            greatest(w.retrying, c.retrying) as retrying
        from jobq_private.look_waiting(_all[:_most_queues], show_totals.most) as w
        left join jobq_private.waiting_count as c
            on c.queue = w.queue and w.queued + w.scheduled + w.retrying > w.ends_at
    ),
    waiting as (
        select
            coalesce(sum(l.queued), 0) as queued, coalesce(sum(l.scheduled), 0) as scheduled,
            coalesce(sum(l.retrying), 0) as retrying, min(l.oldest) as oldest,
            coalesce(bool_or(l.is_cut), false) or cardinality(_all) > _most_queues as is_cut,
            array_agg(l.queue) filter (where l.is_cut) as queues
        from looked as l
    ),
    others as materialized (
        select c.queue, c.state, c.jobs from jobq_private.count_states(show_totals.most) as c
    ),
    known as (
        select unnest(_all) as queue
        union select o.queue from others as o
        union select q.queue from jobq_private.queue as q
        union select unnest(w.queues) from jobq_private.worker as w
    ),
    counted (nth, name, value, is_cut) as (
        select n.*, w.is_cut
        from waiting as w
        cross join lateral (
            values (1, 'queued', w.queued), (2, 'scheduled', w.scheduled), (3, 'retrying', w.retrying)
        ) as n
        union all
        select s.nth, s.state, coalesce(sum(o.jobs), 0), false
        from (values (4, 'running'), (5, 'blocked'), (6, 'dead')) as s (nth, state)
        left join others as o on o.state = s.state
        group by s.nth, s.state
        union all select 7, 'queues', count(*), false from known
    )
    select jsonb_object_agg(c.name, least(c.value, show_totals.most)) || jsonb_build_object(
        'paused', (
            select count(*) from jobq_private.queue as q where q.paused_at is not null
        ),
        'oldest_runnable_ms', (
            select jobq_private.milliseconds(_now - least(w.oldest, (
                select d.due from jobq_internal.next_due(w.queues) as d (due)
                where w.queues is not null and d.due <= _now and d.due > '0001-01-02 UTC'
            )))
            from waiting as w
        ),
        'goes_on', coalesce(jsonb_agg(c.name order by c.nth)
            filter (where c.is_cut or c.value > show_totals.most), '[]')
    ) into _document
    from counted as c;
    return _document;
end
$$;

grant execute on function jobq_http.show_totals to jobq_operator, jobq_reader;

comment on function jobq_http.show_totals is
'Returns the numbers of waiting, running and dead jobs in all queues as a JSON document. Counts are bounded, so it stays cheap.';
