-- Purpose: how many jobs of a queue are claimed before the given one; of a key, if it has one.
-- Invariant: in the order of claim(); two ranges of job_ready_idx or job_key_idx, each counted up
-- to 10,001. The job itself is due, so jobs before it need no comparison with now: a scan with
-- two upper bounds on due_at would continue to the later one.
create or replace function jobq_private.jobs_ahead(job jobq_private.job)
returns bigint language sql stable set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
    select count(*)
    from (
        (
            select from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority = job.priority
            and (j.due_at, j.job_id) < (coalesce(job.due_at, job.run_at), job.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where job.key_id is null
            and j.queue = job.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.priority > job.priority
            and j.due_at <= statement_timestamp()
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = job.queue
            and j.key_id = job.key_id
            and j.state in ('queued', 'retrying')
            and j.priority = job.priority
            and (j.run_at, j.job_id) < (job.run_at, job.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = job.queue
            and j.key_id = job.key_id
            and j.state in ('queued', 'retrying')
            and j.priority > job.priority
            and j.run_at <= statement_timestamp()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;
