-- Purpose: read failures from a JSON array, as kept_failure() returns them. Raises: 22004, 22023.
create or replace function jobq_private.read_failures(failures jsonb)
returns jobq_private.failure[] language sql stable as $$
    select array_agg(jobq_private.kept_failure(f))
    from unnest(jobq_private.read_records(
        null::jobq_private.failure, 'failures', failures,
        '{job_id,attempt,error,error_code,retryable,retry_in,details}'
    )) as f
$$;
