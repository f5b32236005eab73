-- Purpose: the finished jobs of a day (UTC) past retention that must be kept, because a
-- direct or indirect child is live or not that old, or their batch has not ended.
-- Invariant: reads only; visits each edge below the day's jobs once in each direction,
-- however deep the trees. A login that does not see all queues may not see the
-- children, and keeps every job that others may need.
create or replace function jobq_private.needed_jobs(day date, oldest timestamptz)
returns setof uuid language sql stable set timezone = 'UTC' as $$
    with recursive below as (
        select e.child
        from jobq_private.job_archive as a
        join jobq_private.edge as e on e.parent = a.job_id
        where a.finished_at >= needed_jobs.day and a.finished_at < needed_jobs.day + 1
        union
        select e.child
        from below as b
        join jobq_private.edge as e on e.parent = b.child
    ),

    needed as (
        select b.child as job_id
        from below as b
        where jobq_private.worked_queues() is not null
        or exists (select from jobq_private.job as j where j.job_id = b.child)
        or exists (
            select from jobq_private.job_archive as a
            where a.job_id = b.child and a.finished_at >= needed_jobs.oldest
        )
        union
        select e.parent
        from needed as n
        join jobq_private.edge as e on e.child = n.job_id
    )

    select a.job_id
    from jobq_private.job_archive as a
    where a.finished_at >= needed_jobs.day and a.finished_at < needed_jobs.day + 1
    and (
        a.job_id in (select n.job_id from needed as n)
        or (a.batch_id is not null and jobq_private.worked_queues() is not null)
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = a.batch_id and b.ended_at is null
        )
    )
$$;
