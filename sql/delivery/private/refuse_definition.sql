-- Purpose: raise the error for a missing payload spec, config, secret or endpoint.
-- Invariant: always raises.
-- Raises: 22004, 22023, JQ007.
create or replace function jobq_private.refuse_definition(type text, name text)
returns void
language plpgsql
stable
as $$
declare
    _codes constant text[] := array['PAYLOAD_SPEC_NOT_FOUND', 'CONFIG_NOT_FOUND',
        'SECRET_NOT_FOUND', 'ENDPOINT_NOT_FOUND'];
    _types constant text[] := '{payload_spec,config,secret,endpoint}'::text[];
    _place integer := array_position(_types, refuse_definition.type);
begin
    if refuse_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif _place is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'type must be payload_spec, config, secret or endpoint');
    end if;
    perform jobq_private.raise_error(_codes[_place], format(
        '%s %s', refuse_definition.type, refuse_definition.name
    ));
end
$$;
