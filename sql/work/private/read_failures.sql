-- Purpose: read failures from a JSON array as they are stored: errors and details redacted, and
-- instead of details that are too large or too deep the reason why they were omitted.
-- Invariant: refuses unknown members, so that no misspelt retryable is ignored.
-- Raises: 22004, 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
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
    select array_agg(f) into _failures
    from jsonb_populate_recordset(null::jobq_private.failure, failures) as f;
    if exists (
        select from unnest(_failures) as f
        where f.retry_in not between '0' and '365 days'
        or jsonb_typeof(f.details) <> 'object'
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days, details an object'
        );
    end if;
    return array(
        select row(
            f.job_id, f.attempt, jobq_private.redacted(f.error), coalesce(f.error_code, 'ERROR'),
            f.retryable, f.retry_in, case
                when p.problem is null then jobq_private.redacted_json(f.details)
                else jsonb_build_object('omitted', p.problem[2])
            end
        )::jobq_private.failure
        from unnest(_failures) as f
        cross join jobq_private.setting as g
        cross join lateral (
            select jobq_private.value_problem(
                f.details, g.max_payload_bytes, g.max_payload_depth
            )
            offset 0
        ) as p (problem)
    );
end
$$;
