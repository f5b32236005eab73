-- Purpose: Starts no jobs of a running job's concurrency key, or without a key of its
-- kind in its queue, for a duration: for a worker that was rate limited.
-- Invariant: running jobs continue, including this one: settle it. Raises: 22004,
-- 22023, JQ001, JQ003.
-- Argument hold_for: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_job_key(:'running', 1, '30 s', 'status 429');
create or replace function jobq.hold_job_key(
    job_id uuid, attempt integer, hold_for interval, reason text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job record;
begin
    if num_nulls(hold_job_key.job_id, hold_job_key.attempt, hold_job_key.hold_for) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id, attempt and hold_for');
    elsif hold_job_key.hold_for not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'hold_for must be from 0 to 365 days'
        );
    end if;
    select j.queue, j.kind, j.concurrency_key into _job
    from jobq_private.job as j
    where j.job_id = hold_job_key.job_id
    and j.attempt = hold_job_key.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(hold_job_key.job_id, hold_job_key.attempt);
    end if;
    perform jobq_private.store_hold(
        _job.queue, case when _job.concurrency_key is null then _job.kind end,
        _job.concurrency_key, clock_timestamp() + hold_job_key.hold_for, hold_job_key.reason
    );
end
$$;

grant execute on function jobq.hold_job_key to jobq_worker;
