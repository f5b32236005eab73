-- Purpose: Ends an attempt as failed and returns the new state: retrying, dead or cancelled.
-- Invariant: retrying while attempts are left and the failure is retryable, else dead; a stale
-- attempt changes nothing. Without retry_in the kind's backoff decides. The error is redacted and
-- cut at 512 characters. Raises: 22004, 22023, JQ001, JQ003.
-- Returns: the new state: retrying, dead or cancelled.
-- Example: select jobq.fail(:'running', 1, 'status 503', 'HTTP_ERROR', retry_in => '30 s');
create or replace function jobq.fail(
    job_id uuid, attempt integer, error text, error_code text default 'ERROR',
    retryable boolean default true, retry_in interval default null, details jsonb default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _state text;
begin
    select s.state into _state
    from jobq_private.settle_failures(array[jobq_private.kept_failure(row(
        fail.job_id, fail.attempt, fail.error, fail.error_code, fail.retryable, fail.retry_in,
        fail.details
    ))]) as s;
    if not found then
        perform jobq_private.refuse_attempt(fail.job_id, fail.attempt);
    end if;
    return _state;
end
$$;
grant execute on function jobq.fail to jobq_worker;
