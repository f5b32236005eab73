-- Purpose: give places to what runs without in a queue, where limits count what runs.
-- Invariant: the caller holds the lock of the queue's limits exclusively. Raises: nothing.
create or replace function jobq_private.number_running(queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with numbered as materialized (
        select j.job_id, case when j.lane_id is null then 1 else coalesce((
            select max(o.place) from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) end as place
        from jobq_private.job as j
        cross join lateral jobq_private.lane_rule(j.queue, j.concurrency_key) as r
        left join jobq_private.queue as q on q.queue = j.queue
        left join jobq_private.kind as k on k.kind = j.kind
        where j.queue = number_running.queue
        and j.state = 'running'
        and j.place is null
        and num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and n.place <= 32767
$$;

revoke all on function jobq_private.number_running from public;

comment on function jobq_private.number_running is
'Gives places to what runs without in a queue, where limits count what runs.';
