-- Purpose: the jobs connected with one job: all, or those downstream, including itself.
-- Invariant: reads only; the nearest ones, at most max_jobs.
create or replace function jobq_private.tree(
    job_id uuid, direction text, max_jobs integer default 100000
)
returns setof uuid language sql stable as $$
    with recursive found as (
        select tree.job_id
        union
        select e.job_id
        from found as f
        cross join lateral (
            select d.child as job_id from jobq_private.edge as d where d.parent = f.job_id
            union all
            select u.parent from jobq_private.edge as u
            where u.child = f.job_id and tree.direction = 'all'
        ) as e
    )
    select f.job_id from found as f limit tree.max_jobs
$$;
