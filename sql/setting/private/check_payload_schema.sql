-- Purpose: refuse a payload schema that the database cannot enforce, and paths of a concurrency key
-- or a cost that name nothing in it.
-- Invariant: a schema has at most 1 MiB and 150 levels, whatever payloads may have.
-- Raises: 22023, JQ006.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.check_payload_schema(
    payload_schema jsonb, concurrency_key text[], cost text[]
)
returns void
language plpgsql
stable
as $$
declare
    _problem text := coalesce(
        (jobq_private.value_problem(
            payload_schema, jobq_private.json_size(payload_schema), 1048576, 150
        ))[2],
        jobq_private.schema_problem(payload_schema, 'schema')
    );
begin
    if _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    _problem := coalesce(
        jobq_private.key_path_problem('concurrency_key', concurrency_key, payload_schema),
        jobq_private.key_path_problem('cost', cost, payload_schema)
    );
    if _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;
