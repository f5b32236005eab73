-- Purpose: delete a config; its versions stay.
-- Invariant: refused while an endpoint refers to it. Raises: 22004, JQ007, JQ008.
-- Never: INVALID_ARGUMENT, DEFINITION_EXISTS, PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Example: select jobq.delete_config('unused');
create or replace function jobq.delete_config(config text)
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
    perform jobq_private.begin_definition('config', delete_config.config, 'update');
    select e.endpoint into _endpoint
    from jobq_private.endpoint as e
    where e.config = delete_config.config
    order by e.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'endpoint %s', _endpoint
        ));
    end if;
    delete from jobq_private.config as d where d.config = delete_config.config;
end
$$;

revoke all on function jobq.delete_config from public;
grant execute on function jobq.delete_config to jobq_operator;

comment on function jobq.delete_config is
'Deletes a config; refused while an endpoint refers to it.';
