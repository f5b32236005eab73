-- Purpose: why a config, a schema or an endpoint's spec cannot be kept, or null.
-- Invariant: 1 MiB as text and 150 levels, whatever payloads may have: each is shown as a whole
-- in lists and versions. Raises: nothing.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.definition_problem(value jsonb)
returns text
language plpgsql
immutable
parallel safe
as $$
begin
    return (jobq_private.value_problem(
        definition_problem.value, jobq_private.json_size(definition_problem.value), 1048576, 150
    ))[2];
end
$$;
