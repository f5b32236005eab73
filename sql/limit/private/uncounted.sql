-- Purpose: the jobs that run without a place where limits count what runs, of a queue, null for all.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.uncounted(queue text)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select j.job_id
    from jobq_private.job as j
    cross join lateral jobq_private.lane_rule(j.queue, j.concurrency_key) as r
    left join jobq_private.queue as q on q.queue = j.queue
    left join jobq_private.kind as k on k.kind = j.kind
    where (uncounted.queue is null or j.queue = uncounted.queue)
    and j.state = 'running'
    and j.place is null
    and (
        num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
        or j.concurrency_key is not null and exists (
            select from jobq_private.key_rule(j.kind) as e where e.max_running is not null
        )
    )
$$;

revoke all on function jobq_private.uncounted from public;

comment on function jobq_private.uncounted is
'The jobs that run without a place where limits count what runs.';
