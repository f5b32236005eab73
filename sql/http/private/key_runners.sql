-- Purpose: the running jobs that hold keys of a queue, for show_queue(): of one key,
-- or of all.
-- Invariant: a descent of the index of slots.
create or replace function jobq_private.key_runners(
    queue text, key_id uuid, max_rows integer
)
returns json
language sql
stable
as $$
    select coalesce(json_agg(r order by r.started_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at as started_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.slot is not null
        and (key_runners.key_id is null or j.key_id = key_runners.key_id)
        and j.concurrency_key is not null
        limit key_runners.max_rows
    ) as r
$$;
