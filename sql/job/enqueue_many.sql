-- Purpose: Adds many jobs, all or none, and returns for each its id and whether it was created.
-- Invariant: all or none. An unknown member is refused.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Members jobs: enqueue
-- Column job_id: the id of the new job, or of the existing job with the same key.
-- Example: select * from jobq.enqueue_many('[{"kind": "send_email", "payload": {"to": "ada@example.org"}},
--     {"kind": "send_email", "payload": {"to": "bob@example.org"}, "priority": 5}]');
create or replace function jobq.enqueue_many(jobs jsonb)
returns table (ordinal integer, job_id uuid, created boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    select s.n::integer, s.job_id, s.created
    from jobq_private.store_jobs(jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', enqueue_many.jobs,
        '{
            kind, payload, queue, run_at, priority, max_attempts, timeout, idempotency_key,
            dedup_key, dedup, metadata, concurrency_key, expires_at, after, after_failure,
            batch_id, cost
        }'
    )) as a
    cross join lateral unnest(a.ids, a.created) with ordinality as s (job_id, created, n);
end
$$;
grant execute on function jobq.enqueue_many to jobq_producer;
