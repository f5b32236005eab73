-- Purpose: hook: which finished jobs others still need, of those that finished between two
-- moments, or of job_ids; at most max_jobs. needed_until is infinity if as long as the retention.
create or replace function jobq_private.on_forget(
    first timestamptz, last timestamptz, job_ids uuid[], max_jobs integer
)
returns table (job_id uuid, needed_until timestamptz) language sql stable as $$
    select null::uuid, null::timestamptz where false
$$;
