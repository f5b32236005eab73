-- Purpose: check the definitions that an endpoint refers to, and return its payload
-- schema.
-- Invariant: called under the lock of begin_definition(). Raises: JQ007.
create or replace function jobq_private.endpoint_schema(
    endpoint text, spec jsonb, payload_spec text, config text
)
returns jsonb
language plpgsql
stable
parallel safe
as $$
declare
    _schema jsonb;
    _entries jsonb;
begin
    if endpoint_schema.payload_spec is not null then
        select p.schema into _schema
        from jobq_private.payload_spec as p
        where p.payload_spec = endpoint_schema.payload_spec;
        if not found then
            perform jobq_private.raise_error('INVALID_PAYLOAD_SPEC_REF', format(
                'payload_spec %s', endpoint_schema.payload_spec
            ));
        end if;
    end if;
    if endpoint_schema.config is not null then
        select c.entries into _entries
        from jobq_private.config as c
        where c.config = endpoint_schema.config;
        if not found then
            perform jobq_private.raise_error('INVALID_CONFIG_REF', format(
                'config %s', endpoint_schema.config
            ));
        end if;
    end if;
    perform jobq_private.check_references(
        endpoint_schema.endpoint, endpoint_schema.spec, coalesce(_entries, '{}')
    );
    return _schema;
end
$$;
