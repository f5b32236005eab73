-- Purpose: end many attempts as failed, given as a JSON array.
-- Invariant: a stale attempt changes nothing. An unknown member is refused, so that no
-- misspelt retryable is passed over.
-- Raises: 22004, 22023.
-- Members failures: fail
-- Column state: the new state: retrying, dead or cancelled; null where the attempt no
-- longer held the job.
-- Example: select * from jobq.fail_many(jsonb_build_array(jsonb_build_object(
--     'job_id', :'running', 'attempt', 1, 'error', 'no such user', 'retryable', false)));
create or replace function jobq.fail_many(failures jsonb)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'job_id', 'attempt', 'error', 'error_code', 'retryable', 'retry_in',
        'details'
    ];
    _failures jobq_private.failure[];
begin
    if fail_many.failures is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'failures');
    elsif jsonb_typeof(fail_many.failures) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'failures must be a JSON array');
    elsif exists (
        select from jsonb_array_elements(fail_many.failures) as e (failure)
        where jsonb_typeof(e.failure) <> 'object' or e.failure - _known <> '{}'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'each failure must be an object with members among %s', _known
        ));
    end if;
    select array_agg(row(
        f.job_id, f.attempt, jobq_private.redacted(f.error),
        coalesce(f.error_code, 'ERROR'), f.retryable, f.retry_in,
        case when f.details is not null then jobq_private.kept_details(f.details) end
    )::jobq_private.failure) into _failures
    from jsonb_populate_recordset(null::jobq_private.failure, fail_many.failures) as f;
    if exists (
        select from unnest(_failures) as f
        where f.retry_in not between '0' and '365 days'
        or jsonb_typeof(f.details) <> 'object'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'retry_in must be from 0 to 365 days, details an object');
    end if;

    return query
    select f.job_id, f.attempt, s.state
    from unnest(_failures) with ordinality
        as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
    left join jobq_private.settle_failures(_failures, false) as s
        on s.job_id = f.job_id and s.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.fail_many from public;
grant execute on function jobq.fail_many to jobq_worker;

comment on function jobq.fail_many is
'Ends many attempts as failed and tells the new state of each, null where the lease was lost.';
