-- Purpose: the row with which exchange() tells of an attempt that is no new job.
-- Invariant: only job_id and attempt are set. Raises: nothing.
create or replace function jobq_private.lost_job(job_id uuid, attempt integer)
returns jobq.claimed_job
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select row(
        job_id, attempt, null, null, null, null, null, null, null, null, null, null,
        null, null, null
    )::jobq.claimed_job
$$;

revoke all on function jobq_private.lost_job from public;

comment on function jobq_private.lost_job is
'The row that tells of an attempt that is no new job.';
