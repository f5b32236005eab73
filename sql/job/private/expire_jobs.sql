-- Purpose: end at most max_rows waiting jobs that have expired, even if no worker would claim
-- them; return how many. Locked jobs are left to the next call.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint language sql set jit = off set enable_seqscan = off as $$
    with expired as (
        update jobq_private.job as j
        set
            state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
            last_error = 'it did not start before ' || j.expires_at
        where j.job_id = any(array(
            select e.job_id
            from jobq_private.job as e
            where e.expires_at < clock_timestamp() and e.state in ('queued', 'retrying', 'blocked')
            order by e.expires_at
            limit expire_jobs.max_rows
            for update skip locked
        ))
        returning j.job_id
    )
    select count(*) from expired
$$;
