-- Purpose: Starts no jobs of a running job's concurrency key, or without a key of its
-- kind in its queue, for a duration; and returns the job to its queue.
-- Invariant: other running jobs continue. The attempt does not count. With a key, the
-- job runs first in it after the hold. A stale attempt changes nothing. Raises: 22004,
-- 22023, JQ001, JQ003.
-- Argument retry_in: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Argument release: false if the job continues; it must be settled later.
-- Returns: the state: queued, cancelled if that was requested, or running if the job continues.
-- Example: select jobq.rate_limited(:'running', 1, '30 s', 'status 429');
create or replace function jobq.rate_limited(
    job_id uuid, attempt integer, retry_in interval, reason text default null,
    release boolean default true
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job record;
begin
    perform jobq_private.check_given('job_id, attempt, retry_in and release', num_nulls(
        rate_limited.job_id, rate_limited.attempt, rate_limited.retry_in, rate_limited.release
    ));
    perform jobq_private.check_argument(case
        when rate_limited.retry_in not between '0' and '365 days'
        then 'retry_in must be from 0 to 365 days'
    end);
    select j.queue, j.kind, j.concurrency_key into _job
    from jobq_private.job as j
    where j.job_id = rate_limited.job_id
    and j.attempt = rate_limited.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(rate_limited.job_id, rate_limited.attempt);
    end if;
    perform jobq_private.store_hold(
        _job.queue, case when _job.concurrency_key is null then _job.kind end,
        _job.concurrency_key, clock_timestamp() + rate_limited.retry_in, rate_limited.reason
    );
    if not rate_limited.release then
        return 'running';
    end if;
    return jobq.release(rate_limited.job_id, rate_limited.attempt);
end
$$;
grant execute on function jobq.rate_limited to jobq_worker;
