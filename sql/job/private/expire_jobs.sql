-- Purpose: end at most max_rows waiting jobs that have expired, even if no worker would claim
-- them; return how many. Locked jobs are left to the next call.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language plpgsql
set jit = off
set enable_seqscan = off
as $$
declare
    _jobs uuid[];
    _attempts integer[];
begin
    with expired as (
        update jobq_private.job as j
        set
            last_error_code = 'EXPIRED', last_error_details = null,
            last_error = 'it did not start before ' || j.expires_at
        where j.job_id = any(array(
            select e.job_id
            from jobq_private.job as e
            where e.expires_at < clock_timestamp() and e.state in ('queued', 'retrying', 'blocked')
            order by e.expires_at
            limit expire_jobs.max_rows
            for update skip locked
        ))
        returning j.job_id, j.attempt
    )
    select array_agg(e.job_id), array_agg(e.attempt) into _jobs, _attempts from expired as e;
    if _jobs is null then
        return 0;
    end if;
    return coalesce(cardinality(jobq_private.archive_jobs(_jobs, _attempts, 'dead')), 0);
end
$$;
