-- Purpose: delete a secret; its versions stay.
-- Invariant: refused while an endpoint refers to it. Raises: 22004, JQ007, JQ008.
-- Never: INVALID_ARGUMENT, DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Example: select jobq.delete_secret('unused');
create or replace function jobq.delete_secret(secret text)
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
    perform jobq_private.begin_definition('secret', delete_secret.secret, 'update');
    select e.endpoint into _endpoint
    from jobq_private.endpoint_secret as e
    where e.secret = delete_secret.secret
    order by e.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'endpoint %s', _endpoint
        ));
    end if;
    delete from jobq_private.secret as d where d.secret = delete_secret.secret;
end
$$;

revoke all on function jobq.delete_secret from public;
grant execute on function jobq.delete_secret to jobq_operator;

comment on function jobq.delete_secret is
'Deletes a secret; refused while an endpoint refers to it.';
