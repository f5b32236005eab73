-- Purpose: delete a payload spec; its versions stay.
-- Invariant: refused while an endpoint refers to it. Raises: 22004, JQ007, JQ008.
-- Never: INVALID_ARGUMENT, DEFINITION_EXISTS, CONFIG_NOT_FOUND, SECRET_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Example: select jobq.delete_payload_spec('unused');
create or replace function jobq.delete_payload_spec(payload_spec text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _endpoint text;
begin
    perform jobq_private.begin_definition('payload_spec',
        delete_payload_spec.payload_spec, 'update');
    select e.endpoint into _endpoint
    from jobq_private.endpoint as e
    where e.payload_spec = delete_payload_spec.payload_spec
    order by e.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'endpoint %s', _endpoint
        ));
    end if;
    delete from jobq_private.payload_spec as d
    where d.payload_spec = delete_payload_spec.payload_spec;
end
$$;

revoke all on function jobq.delete_payload_spec from public;
grant execute on function jobq.delete_payload_spec to jobq_operator;

comment on function jobq.delete_payload_spec is
'Deletes a payload spec; refused while an endpoint refers to it.';
