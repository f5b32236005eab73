-- Purpose: how many jobs of a queue are claimed before the one with this place.
-- Invariant: the order of claim(); counts at most 10,000. Raises: nothing.
create or replace function jobq_private.jobs_ahead(
    queue text, priority integer, run_at timestamptz, job_id uuid
)
returns bigint
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select count(*)
    from (
        select from jobq_private.job as j
        where j.queue = jobs_ahead.queue
        and j.state in ('queued', 'retrying')
        and j.run_at <= clock_timestamp()
        and (-j.priority, j.run_at, j.job_id)
            < (-jobs_ahead.priority, jobs_ahead.run_at, jobs_ahead.job_id)
        limit 10000
    ) as ahead
$$;

revoke all on function jobq_private.jobs_ahead from public;

comment on function jobq_private.jobs_ahead is
'Counts the jobs of a queue that are claimed before the one with this place.';
