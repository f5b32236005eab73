-- Purpose: the jobs between two ids that match a filter; null matches all.
-- Invariant: PostgreSQL inlines it, so with a custom plan it reads only what the given
-- filters need. Inside: the text of an id contains only hexadecimal digits and dashes.
create or replace function jobq_private.match_jobs(
    states text[], oldest uuid, before uuid, kind text default null, queue text default null,
    metadata jsonb default null, error_code text default null, trigger text default null,
    idempotency_key text default null, worker text default null, payload jsonb default null,
    search text default null, batch_id uuid default null, job_ids uuid[] default null
)
returns setof jobq.job language sql stable as $$
    select j.*
    from jobq.job as j
    where j.job_id < before and j.job_id >= oldest
    and (states is null or j.state = any(states))
    and (j.finished_at is not null or states <@ '{succeeded,dead,cancelled}' is not true)
    and (match_jobs.job_ids is null or j.job_id = any(match_jobs.job_ids))
    and (match_jobs.kind is null or j.kind = match_jobs.kind)
    and (match_jobs.queue is null or j.queue = match_jobs.queue)
    and (match_jobs.metadata is null or j.metadata @> match_jobs.metadata)
    and (error_code is null or j.last_error_code = error_code)
    and (trigger is null or jobq_private.job_trigger(j) = trigger)
    and (match_jobs.idempotency_key is null or j.idempotency_key = match_jobs.idempotency_key)
    and (match_jobs.worker is null or j.worker = match_jobs.worker)
    and (match_jobs.payload is null or j.payload @> match_jobs.payload)
    and (match_jobs.batch_id is null or j.batch_id = match_jobs.batch_id)
    and (
        search is null
        or j.job_id::text like substring(lower(search) from '^[0-9a-f-]{4,36}$') || '%'
        or j.job_id::text like '%' || substring(lower(search) from '^[0-9a-f-]{4,36}$')
        or search in (j.idempotency_key, j.dedup_key, j.concurrency_key)
        or position(lower(search) in lower(j.last_error)) > 0
    )
$$;
