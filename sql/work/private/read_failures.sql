-- Purpose: read failures from a JSON array, as kept_failure() returns them. Refuses unknown
-- members, so that no misspelt retryable is ignored. Raises: 22004, 22023.
create or replace function jobq_private.read_failures(failures jsonb)
returns jobq_private.failure[]
language plpgsql
stable
as $$
declare
    _known constant text[] := array[
        'job_id', 'attempt', 'error', 'error_code', 'retryable', 'retry_in', 'details'
    ];
    _failures jobq_private.failure[];
begin
    if failures is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'failures');
    elsif jsonb_typeof(failures) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'failures must be a JSON array');
    elsif exists (
        select from jsonb_array_elements(failures) as e (failure)
        where jsonb_typeof(e.failure) <> 'object' or e.failure - _known <> '{}'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'each failure must be an object with members among %s', _known
        ));
    end if;
    select array_agg(jobq_private.kept_failure(f)) into _failures
    from jsonb_populate_recordset(null::jobq_private.failure, failures) as f;
    return _failures;
end
$$;
