-- Purpose: Creates or replaces a payload spec: the JSON Schema of the input of endpoints.
-- Invariant: existing jobs keep their version. If the database supports all keywords of
-- a schema, enqueue() refuses input that does not match; delivery always does.
-- Raises: 22004, 22023, 42501, JQ004, JQ006, JQ007.
-- Never: CONFIG_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument schema: a JSON Schema (draft 2020-12).
-- Returns: the payload spec as show_definition() returns it.
-- Example: select jobq.put_payload_spec('welcome', '{"type": "object", "required": ["user_id"]}');
create or replace function jobq.put_payload_spec(
    payload_spec text, schema jsonb, mode text default 'put'
)
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _item json;
begin
    perform jobq_private.begin_definition('payload_spec', put_payload_spec.payload_spec,
        put_payload_spec.mode);
    perform jobq_private.check_problem('SCHEMA_INVALID', case
        when jsonb_typeof(put_payload_spec.schema) is distinct from 'object'
        then 'schema must be an object'
        else coalesce(
            jobq_private.definition_problem(put_payload_spec.schema),
            jobq_private.json_schema_problem(put_payload_spec.schema)
        )
    end);
    _item := jobq_private.store_definition(
        'payload_spec', put_payload_spec.payload_spec, put_payload_spec.schema
    );
    perform jobq_private.pin_delivery(e.endpoint)
    from jobq_private.endpoint as e
    where e.payload_spec = put_payload_spec.payload_spec;
    return _item;
end
$$;
grant execute on function jobq.put_payload_spec to jobq_operator;
