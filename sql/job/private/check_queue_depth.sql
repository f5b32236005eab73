-- Purpose: refuse jobs if more than max_depth jobs would then wait in their queues.
-- Invariant: a stored counter could drift, so rows are counted, at most max_depth index entries:
-- some 10 ms for 100,000. New jobs are already stored, so a deduplicated job adds nothing.
-- Full queues accept slots of schedules. Concurrent callers may exceed the limit by what they add
-- at the same moment. Raises: JQ010.
create or replace function jobq_private.check_queue_depth(
    job_ids uuid[], to_queue text default null
)
returns void language plpgsql stable set plan_cache_mode = force_generic_plan
set enable_seqscan = off set jit = off as $$
begin
    perform jobq_private.check_problem('QUEUE_FULL', (
        select format('queue %s: max_depth %s, %s more requested', q.queue, q.max_depth, a.adding)
        from (
            select
                coalesce(to_queue, j.queue) as queue, count(*) as adding,
                count(*) filter (where j.state = 'blocked' or j.queue <> to_queue) as unseen
            from jobq_private.job as j
            where j.job_id = any (check_queue_depth.job_ids)
            and j.slot_at is null and j.queue is distinct from to_queue
            group by 1
        ) as a
        join jobq_private.queue as q on q.queue = a.queue and q.max_depth is not null
        where q.max_depth - a.unseen < (
            select count(*)
            from (
                select from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.due_at is not null
                union all
                select from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.key_id is not null
                limit q.max_depth + 1
            ) as present
        )
        limit 1
    ));
end
$$;
