-- Purpose: Returns the numbers of waiting, running and dead jobs in all queues as a
-- JSON document. Counts are bounded, so it stays cheap.
-- Invariant: sums of the figures of queue_stats(), each up to `most`. For long queues it uses the
-- last count of maintain(). Raises: 22004, 22023.
-- Returns: a JSON object: queued, scheduled, retrying, running, blocked, dead, queues,
-- paused (how many queues are), oldest_runnable_ms, goes_on (an array with the names of
-- counts that may be larger).
-- Example: select jobq_http.show_totals() ->> 'dead';
create or replace function jobq_http.show_totals(most integer default 10000)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
begin
    perform jobq_private.check_count('most', show_totals.most, 1, 100000);
    return (
        with figure as materialized (
            select f.* from jobq_private.queue_figures(show_totals.most) as f
        ),
        counted as (
            select c.*
            from (
                select
                    coalesce(sum(f.queued), 0) as queued, coalesce(sum(f.scheduled), 0) as scheduled,
                    coalesce(sum(f.retrying), 0) as retrying, coalesce(sum(f.running), 0) as running,
                    coalesce(sum(f.blocked), 0) as blocked, coalesce(sum(f.dead), 0) as dead,
                    count(*) as queues
                from figure as f
            ) as t
            cross join lateral (
                values
                (1, 'queued', t.queued), (2, 'scheduled', t.scheduled), (3, 'retrying', t.retrying),
                (4, 'running', t.running), (5, 'blocked', t.blocked), (6, 'dead', t.dead),
                (7, 'queues', t.queues)
            ) as c (nth, name, value)
        )
        select jsonb_object_agg(c.name, least(c.value, show_totals.most)) || jsonb_build_object(
            'paused', (
                select count(*) from jobq_private.queue as q where q.paused_at is not null
            ),
            'oldest_runnable_ms', (
                select jobq_private.milliseconds(clock_timestamp() - min(f.oldest)) from figure as f
            ),
            'goes_on', coalesce(jsonb_agg(c.name order by c.nth) filter (
                where c.value > show_totals.most
                or exists (select from figure as f where c.name = any(f.goes_on))
            ), '[]')
        )
        from counted as c
    );
end
$$;
grant execute on function jobq_http.show_totals to jobq_operator, jobq_reader;
