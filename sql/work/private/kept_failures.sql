-- Purpose: failures as they are stored: errors and details redacted, and instead of details that are
-- too large or too deep the reason why they were omitted.
-- Raises: 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_failures(failures jobq_private.failure[])
returns jobq_private.failure[]
language plpgsql
stable
as $$
begin
    if exists (
        select from unnest(kept_failures.failures) as f
        where f.retry_in not between '0' and '365 days'
        or jsonb_typeof(f.details) <> 'object'
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days, details an object'
        );
    end if;
    return nullif(array(
        select row(
            f.job_id, f.attempt, jobq_private.redacted(f.error), coalesce(f.error_code, 'ERROR'),
            f.retryable, f.retry_in, case
                when p.problem is null then jobq_private.redacted_json(f.details)
                else jsonb_build_object('omitted', p.problem[2])
            end
        )::jobq_private.failure
        from unnest(kept_failures.failures) as f
        cross join jobq_private.setting as g
        cross join lateral (
            select jobq_private.value_problem(
                f.details, g.max_payload_bytes, g.max_payload_depth
            )
            offset 0
        ) as p (problem)
    ), '{}');
end
$$;
