-- Purpose: refuse new jobs if one of them is invalid, without storing them.
-- Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_new_jobs(jobs jobq_private.new_job[])
returns void language sql stable as $$
    select jobq_private.raise_error(p.problem[1], p.problem[2])
    from unnest(check_new_jobs.jobs) as j
    cross join lateral jobq_private.settings_for(j.kind, j.queue) as s
    cross join lateral (
        select jobq_private.new_job_problem(j, s) offset 0
    ) as p (problem)
    where p.problem is not null
$$;
