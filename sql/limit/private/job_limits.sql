-- Purpose: the limits that apply to the start of a job: those of its whole queue, its
-- whole kind, and its key; without a key, a hold of its kind in its queue.
create or replace function jobq_private.job_limits(job jobq_private.job)
returns setof jobq_private.scope language sql stable rows 2 as $$
    select jobq_private.limit_id(q.queue, null, null), q.queue, null, null
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
    union all
    select jobq_private.limit_id(null, k.kind, null), null, k.kind, null
    from jobq_private.kind as k
    where k.kind = job.kind and num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
    union all
    (
        select h.limit_id, h.queue, h.kind, null
        from jobq_private.limit_hold as h
        where job.concurrency_key is null
        and h.limit_id = jobq_private.limit_id(job.queue, job.kind, null)
        limit 1
    )
    union all
    select
        job.key_id, job.queue,
        jobq_private.key_kind(job.key_id, job.queue, job.concurrency_key, job.kind),
        job.concurrency_key
    where job.concurrency_key is not null
$$;
