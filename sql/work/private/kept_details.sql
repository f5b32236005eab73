-- Purpose: the details of a failure as they are stored: what is too large or too deep to be
-- read again is left out, with the reason, for the failure itself must be told; so is what is
-- secret.
-- Invariant: the limits are those of a payload, read only where there are details.
-- Raises: nothing. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_details(details jsonb)
returns jsonb
language plpgsql
stable
parallel safe
as $$
declare
    _problem text[];
begin
    if details is not null then
        select jobq_private.value_problem(
            details, jobq_private.json_size(details), g.max_payload_bytes, g.max_payload_depth
        ) into _problem
        from jobq_private.setting as g;
    end if;
    return case
        when _problem is null then jobq_private.redacted_json(details)
        else jsonb_build_object('omitted', _problem[2])
    end;
end
$$;
