-- Purpose: the details of a failure as they are stored: redacted, or if they are too large or too
-- deep, only the reason why they were omitted.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_details(details jsonb)
returns jsonb
language plpgsql
stable
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
