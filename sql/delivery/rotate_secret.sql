-- Purpose: Replaces the ciphertext of a secret by one with another key, if the version
-- is unchanged.
-- Invariant: replaces only the version that was read, and does not create a version.
-- Raises: 22004, 22023, 42501, JQ007.
-- Never: DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument version: the version that was read, as in list_ciphertexts().
-- Returns: whether it was replaced; false if it has changed.
-- Example: select jobq_internal.rotate_secret('api_key', 1, decode(repeat('01', 44), 'hex'), 'key-2');
create or replace function jobq_internal.rotate_secret(
    secret text, version integer, ciphertext bytea, key_id text
)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.begin_definition('secret', rotate_secret.secret, 'update');
    update jobq_private.definition as d
    set ciphertext = rotate_secret.ciphertext, key_id = rotate_secret.key_id
    where d.type = 'secret'
    and d.name = rotate_secret.secret
    and d.version = rotate_secret.version;
    return found;
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'ciphertext of 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;
grant execute on function jobq_internal.rotate_secret to jobq_operator;
