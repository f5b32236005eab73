-- Purpose: the reason why a config, schema or endpoint spec cannot be stored, or null.
-- Invariant: at most 1 MiB as text and 150 levels, independent of the limits of
-- payloads, because lists and versions show each as a whole.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.definition_problem(value jsonb)
returns text language sql immutable as $$
    select (jobq_private.value_problem(definition_problem.value, 1048576, 150))[2]
$$;
