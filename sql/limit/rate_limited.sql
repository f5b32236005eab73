-- Purpose: Returns a leased job to its queue without counting the attempt, and holds
-- its concurrency key, or without a key its kind in its queue.
-- Invariant: the attempt does not count. With a key, the job runs first in it after the
-- hold. A stale attempt changes nothing. Raises: 22004, 22023, JQ001, JQ003.
-- Argument retry_in: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: the new state: queued, or cancelled if that was requested.
-- Example: select jobq.rate_limited(:'running', 1, '30 s', 'status 429');
create or replace function jobq.rate_limited(
    job_id uuid, attempt integer, retry_in interval, reason text default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if rate_limited.retry_in is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'retry_in');
    elsif rate_limited.retry_in not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days'
        );
    end if;
    perform jobq.hold_job_key(
        rate_limited.job_id, rate_limited.attempt, rate_limited.retry_in,
        rate_limited.reason
    );
    return jobq.release(rate_limited.job_id, rate_limited.attempt);
end
$$;

grant execute on function jobq.rate_limited to jobq_worker;
