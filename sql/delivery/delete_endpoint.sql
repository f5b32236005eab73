-- Purpose: delete an endpoint and its kind; its versions stay.
-- Invariant: refused while live jobs or schedules of it exist.
-- Raises: 22004, JQ007, JQ008.
-- Never: INVALID_ARGUMENT, DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- SECRET_NOT_FOUND.
-- Example: select jobq.delete_endpoint('send-welcome');
create or replace function jobq.delete_endpoint(endpoint text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('endpoint', delete_endpoint.endpoint, 'update');
    perform jobq.delete_kind(delete_endpoint.endpoint);
end
$$;

revoke all on function jobq.delete_endpoint from public;
grant execute on function jobq.delete_endpoint to jobq_operator;

comment on function jobq.delete_endpoint is
'Deletes an endpoint and its kind; refused while live jobs or schedules of it exist.';
