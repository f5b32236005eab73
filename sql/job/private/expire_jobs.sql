-- Purpose: end at most max_rows waiting jobs that have expired, even if no worker would claim
-- them; return how many. Locked jobs are left to the next call.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language plpgsql
set jit = off
set enable_seqscan = off
as $$
declare
    _ended bigint;
begin
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
    ));
    get diagnostics _ended = row_count;
    return _ended;
end
$$;
