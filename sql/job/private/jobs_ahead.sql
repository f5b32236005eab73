-- Purpose: how many jobs of a queue are claimed before the one with this place.
-- Invariant: the order of claim(); two ranges of job_ready_idx, each of which counts 10,001 at
-- most. The job itself is due, so nothing before it need be compared with now: a scan that has
-- two ends on run_at reads on to the later one. Raises: nothing.
create or replace function jobq_private.jobs_ahead(
    queue text, priority integer, run_at timestamptz, job_id uuid
)
returns bigint
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*)
    from (
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority = jobs_ahead.priority
            and (j.run_at, j.job_id) < (jobs_ahead.run_at, jobs_ahead.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority > jobs_ahead.priority
            and j.run_at <= now()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;

revoke all on function jobq_private.jobs_ahead from public;

comment on function jobq_private.jobs_ahead is
'Counts the jobs of a queue that are claimed before the one with this place.';
