-- Purpose: a page of queues with their statistics, by name; cursor as in page_jobs().
-- Invariant: the figures of queue_stats(). Raises: nothing.
-- Argument after: only queues whose names sort after this one.
-- Argument max_queues: maximum number.
-- Members item: page_queues
-- Example: select * from jobq_http.page_queues();
create or replace function jobq_http.page_queues(
    after text default null, max_queues integer default 50
)
returns table (item json, cursor text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'queue', t.queue,
            'queued', t.queued,
            'scheduled', t.scheduled,
            'running', t.running,
            'retrying', t.retrying,
            'dead', t.dead,
            'oldest_runnable_ms', jobq_private.milliseconds(t.oldest_runnable),
            'finished_last_minute', t.finished_last_minute,
            'is_paused', t.is_paused,
            'lanes', t.lanes,
            'closed_lanes', t.closed_lanes,
            'is_exact', t.is_exact,
            'blocked', t.blocked
        ),
        case when t.n < t.total then t.queue end
    from (
        select
            s.*, row_number() over (order by s.queue) as n, count(*) over () as total
        from jobq.queue_stats() as s
        where page_queues.after is null or s.queue > page_queues.after
    ) as t
    where t.n <= page_queues.max_queues
    order by t.n;
end
$$;

grant execute on function jobq_http.page_queues to jobq_operator, jobq_reader;

comment on function jobq_http.page_queues is
'Returns a page of queues with their statistics as JSON documents.';
