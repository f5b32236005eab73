-- Purpose: end waiting jobs that have expired, also where no worker would claim them.
-- Invariant: a bounded number at a call, by an index of such jobs alone; what somebody holds is
-- left to the next call. job_transition does the same to what a claim meets.
-- Returns how many ended. Raises: nothing.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _ended bigint;
begin
    update jobq_private.job as j
    set
        state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
        last_error = 'it could not start before ' || j.expires_at
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

revoke all on function jobq_private.expire_jobs from public;

comment on function jobq_private.expire_jobs is
'Ends waiting jobs that have expired.';
