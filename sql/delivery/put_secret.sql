-- Purpose: Creates or replaces an encrypted secret.
-- Invariant: the database never has the value or the key; versions keep no ciphertext.
-- Raises: 22004, 22023, 42501, JQ004, JQ007.
-- Never: CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the secret as show_definition() returns it, without its value.
-- Example: select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1');
create or replace function jobq.put_secret(
    secret text, ciphertext bytea, key_id text, mode text default 'put'
)
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.begin_definition('secret', put_secret.secret, put_secret.mode);
    perform jobq_private.check_given(
        'ciphertext or key_id', num_nulls(ciphertext, key_id)
    );
    return jobq_private.store_definition(
        'secret', put_secret.secret, null, put_secret.ciphertext, put_secret.key_id
    );
end
$$;
grant execute on function jobq.put_secret to jobq_operator;
