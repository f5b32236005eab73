-- Purpose: Creates or replaces an encrypted secret.
-- Invariant: the database never has the value or the key; versions keep no ciphertext.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the secret as show_definition() returns it, without its value.
-- Example: select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1');
create or replace function jobq.put_secret(
    secret text, ciphertext bytea, key_id text, mode text default 'put'
)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
begin
    perform jobq_private.begin_definition('secret', put_secret.secret, put_secret.mode);
    if put_secret.ciphertext is null or put_secret.key_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ciphertext or key_id');
    end if;
    _version := jobq_private.record_version('secret', put_secret.secret,
        jsonb_build_object('sha256', encode(sha256(put_secret.ciphertext), 'hex')));

    insert into jobq_private.secret as s (secret, ciphertext, key_id, version)
    values (put_secret.secret, put_secret.ciphertext, put_secret.key_id, _version)
    on conflict on constraint secret_pkey do update
    set
        ciphertext = excluded.ciphertext, key_id = excluded.key_id,
        version = excluded.version, updated_at = now();
    return jobq_internal.show_definition('secret', put_secret.secret);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'secret: 1 to 128 lowercase letters, digits, hyphens and underscores, '
            || 'encrypted in 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

grant execute on function jobq.put_secret to jobq_operator;
