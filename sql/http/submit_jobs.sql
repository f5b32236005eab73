-- Purpose: Enqueues many jobs like enqueue_many(); some must belong to endpoints.
-- Invariant: as enqueue_many(); all or none.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument endpoints: kinds among those of the jobs that must be endpoints.
-- Members jobs: enqueue_many
-- Returns: one row per job, with its position in the array.
-- Column ordinal: the place in the array, from 1.
-- Column job_id: the job, a new one or the one that holds the key already.
-- Column created: whether this call created it.
-- Example: select * from jobq_http.submit_jobs('[{"kind": "send_email"}]', '{}');
create or replace function jobq_http.submit_jobs(jobs jsonb, endpoints text[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_endpoints(submit_jobs.endpoints);
    return query select * from jobq.enqueue_many(submit_jobs.jobs);
end
$$;

grant execute on function jobq_http.submit_jobs to jobq_producer;
