-- Purpose: raise the error for a missing payload spec, config, secret or endpoint.
-- Invariant: always raises. Raises: 22004, 22023, JQ007.
create or replace function jobq_private.refuse_definition(type text, name text)
returns void language plpgsql stable as $$
declare
    _code constant text := case refuse_definition.type
        when 'payload_spec' then 'PAYLOAD_SPEC_NOT_FOUND'
        when 'config' then 'CONFIG_NOT_FOUND'
        when 'secret' then 'SECRET_NOT_FOUND'
        when 'endpoint' then 'ENDPOINT_NOT_FOUND'
    end;
begin
    perform jobq_private.check_given('name', num_nulls(refuse_definition.name));
    perform jobq_private.check_argument(case
        when _code is null then 'type must be payload_spec, config, secret or endpoint'
    end);
    perform jobq_private.raise_error(
        _code, refuse_definition.type || ' ' || refuse_definition.name
    );
end
$$;
