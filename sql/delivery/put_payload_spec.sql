-- Purpose: Creates or replaces a payload spec: the JSON Schema of the input of
-- endpoints.
-- Invariant: existing jobs keep their version. If the database supports all keywords of
-- a schema, enqueue() refuses input that does not match; delivery always does.
-- Raises: 22004, 22023, JQ004, JQ006, JQ007.
-- Never: CONFIG_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument schema: a JSON Schema (draft 2020-12).
-- Returns: the payload spec as show_definition() returns it.
-- Example: select jobq.put_payload_spec('welcome', '{"type": "object", "required": ["user_id"]}');
create or replace function jobq.put_payload_spec(
    payload_spec text, schema jsonb, mode text default 'put'
)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
    _problem text;
begin
    perform jobq_private.begin_definition('payload_spec', put_payload_spec.payload_spec,
        put_payload_spec.mode);
    if jsonb_typeof(put_payload_spec.schema) is distinct from 'object' then
        perform jobq_private.raise_error('SCHEMA_INVALID', 'schema must be an object');
    end if;
    _problem := coalesce(
        jobq_private.definition_problem(put_payload_spec.schema),
        jobq_private.json_schema_problem(put_payload_spec.schema)
    );
    if _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    _version := jobq_private.record_version('payload_spec', put_payload_spec.payload_spec,
        jsonb_build_object('schema', put_payload_spec.schema));

    insert into jobq_private.payload_spec as p (payload_spec, schema, version)
    values (put_payload_spec.payload_spec, put_payload_spec.schema, _version)
    on conflict on constraint payload_spec_pkey do update
    set schema = excluded.schema, version = excluded.version, updated_at = now()
    where p.version <> excluded.version;

    perform jobq_private.pin_delivery(e.endpoint)
    from jobq_private.endpoint as e
    where e.payload_spec = put_payload_spec.payload_spec;
    return jobq_internal.show_definition('payload_spec', put_payload_spec.payload_spec);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'payload_spec: 1 to 128 lowercase letters, digits, hyphens and underscores');
        return null;
end
$$;

grant execute on function jobq.put_payload_spec to jobq_operator;
