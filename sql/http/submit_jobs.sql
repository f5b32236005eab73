-- Purpose: Enqueues many jobs like enqueue_many(); some must belong to endpoints.
-- Invariant: as enqueue_many(); all or none.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument endpoints: kinds among those of the jobs that must be endpoints.
-- Members jobs: enqueue_many
-- Returns: one row per job, with its position in the array.
-- Column job_id: the job, a new one or the one that holds the key already.
-- Example: select * from jobq_http.submit_jobs('[{"kind": "send_email"}]', '{}');
create or replace function jobq_http.submit_jobs(jobs jsonb, endpoints text[])
returns table (ordinal integer, job_id uuid, created boolean) language sql security definer
set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_endpoints(submit_jobs.endpoints);
    select e.ordinal, e.job_id, e.created from jobq.enqueue_many(submit_jobs.jobs) as e
$$;
grant execute on function jobq_http.submit_jobs to jobq_producer;
