-- Purpose: the running jobs that hold keys of a queue, for show_queue(): of one key, with those
-- of kinds that have limits for each key, in all queues; or of all keys.
-- Invariant: descents of the indexes of slots.
create or replace function jobq_private.key_runners(
    queue text, concurrency_key text, max_rows integer
)
returns json language sql stable as $$
    select coalesce(json_agg(r order by r.started_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at as started_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.slot is not null
        and j.concurrency_key is not null
        and (key_runners.concurrency_key is null or j.key_id = jobq_private.limit_id(
            key_runners.queue, null, key_runners.concurrency_key
        ))
        union all
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at
        from jobq_private.kind as k
        join jobq_private.job as j on j.kind = k.kind
        where num_nonnulls(k.key_max_running, k.key_rate_limit, k.key_budget, k.ordered) > 0
        and j.concurrency_key = key_runners.concurrency_key and j.slot is not null
        and (j.queue, j.key_id) is distinct from (key_runners.queue, jobq_private.limit_id(
            key_runners.queue, null, key_runners.concurrency_key
        ))
        limit key_runners.max_rows
    ) as r
$$;
