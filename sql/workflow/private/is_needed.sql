-- Purpose: whether a finished job that is past retention is to be kept: a job that waited for
-- it, or for one that did, is live, or not that old itself; or its batch has not ended.
-- Invariant: reads only; asks little of jobs for which no other waits. Who does not see all queues
-- may not see who needs it, and leaves it to others. Raises: nothing.
create or replace function jobq_private.is_needed(job_id uuid, batch_id uuid, oldest timestamptz)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (
        is_needed.batch_id is not null
        or exists (select from jobq_private.edge as e where e.parent = is_needed.job_id)
    )
    and (
        jobq_private.worked_queues() is not null
        or exists (
            with recursive below as (
                select e.child
                from jobq_private.edge as e
                where e.parent = is_needed.job_id
                union
                select e.child
                from below as b
                join jobq_private.edge as e on e.parent = b.child
            )
            select from below as b
            where exists (select from jobq_private.job as j where j.job_id = b.child)
            or exists (
                select from jobq_private.job_archive as a
                where a.job_id = b.child and a.finished_at >= is_needed.oldest
            )
        )
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = is_needed.batch_id and b.ended_at is null
        )
    )
$$;

revoke all on function jobq_private.is_needed from public;

comment on function jobq_private.is_needed is
'Whether a finished job that is past retention is to be kept for others.';
