-- Purpose: the first waiting jobs of a queue, at most so many without and with keys each.
-- Invariant: in the order of the indexes of claims, so it reads no other jobs. Callers pin the
-- planner's settings.
-- Argument due_by: only jobs that are due until then.
-- Column due_at: of jobs with keys, their run_at.
create or replace function jobq_private.head_jobs(
    queue text, most integer, due_by timestamptz default 'infinity'
)
returns table (job_id uuid, kind text, state text, run_at timestamptz, due_at timestamptz)
language sql stable as $$
    (
        select j.job_id, j.kind, j.state, j.run_at, j.due_at
        from jobq_private.job as j
        where j.queue = head_jobs.queue and j.state in ('queued', 'retrying')
        and j.due_at <= head_jobs.due_by
        order by j.priority desc, j.due_at, j.job_id
        limit head_jobs.most
    )
    union all
    (
        select j.job_id, j.kind, j.state, j.run_at, j.run_at
        from jobq_private.job as j
        where j.queue = head_jobs.queue and j.state in ('queued', 'retrying')
        and j.key_id is not null
        and j.run_at <= head_jobs.due_by
        order by j.key_id, j.priority, j.run_at, j.job_id
        limit head_jobs.most
    )
$$;
