-- Purpose: why the job that goes before a waiting one does not fit into a budget: cheaper jobs
-- wait behind it. For explain(); no row if it fits, or if the given job is the first.
-- Invariant: in the order of claims, by the first entries of their indexes.
create or replace function jobq_private.explain_first(job jobq_private.job)
returns setof text language sql stable set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
    select format('job %s goes first: %s', f.job_id, replace(b.explanation, 'this job', 'it'))
    from (
        (
            select j.*
            from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue and j.state in ('queued', 'retrying')
            and j.due_at <= statement_timestamp()
            order by j.priority desc, j.due_at, j.job_id
            limit 1
        )
        union all
        (
            select j.*
            from jobq_private.job as j
            where j.queue = job.queue and j.key_id = job.key_id and j.priority = job.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= statement_timestamp()
            order by j.run_at, j.job_id
            limit 1
        )
    ) as f
    cross join lateral jobq_private.blocking_limits(f, clock_timestamp()) as b
    where f.job_id <> job.job_id and b.reason = 'budget'
$$;
