-- Purpose: when the present execution of a running job began; null in its first
-- attempt. Its config stays the same since then.
-- Invariant: ignores attempts that do not count, and those before a redrive.
create or replace function jobq_private.execution_started_at(job_id uuid)
returns timestamptz
language sql
stable
parallel safe
as $$
    select t.started_at
    from (
        select a.job_id, a.started_at, row_number() over (order by a.attempt desc) as n
        from jobq_private.attempt as a
        where a.job_id = execution_started_at.job_id and a.state = 'retrying'
    ) as t
    join jobq_private.job as j on j.job_id = t.job_id
    where t.n = j.attempt - j.uncounted - 1
$$;
