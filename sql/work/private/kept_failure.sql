-- Purpose: a failure as it is stored: its error and details redacted, or instead of details that
-- are too large or too deep only the reason why they were omitted.
-- Raises: 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_failure(failure jobq_private.failure)
returns jobq_private.failure language plpgsql stable as $$
declare
    _problem text[];
begin
    perform jobq_private.check_argument(case
        when failure.retry_in not between '0' and '365 days'
            or jsonb_typeof(failure.details) <> 'object'
        then 'retry_in must be from 0 to 365 days, details an object'
    end);
    if failure.details is not null then
        select jobq_private.value_problem(
            failure.details, g.max_payload_bytes, g.max_payload_depth
        ) into _problem
        from jobq_private.setting as g;
        failure.details := case
            when _problem is null then jobq_private.redacted_json(failure.details)
            else jsonb_build_object('omitted', _problem[2])
        end;
    end if;
    failure.error := jobq_private.redacted(failure.error);
    failure.error_code := coalesce(failure.error_code, 'ERROR');
    return failure;
end
$$;
