-- Purpose: Returns all encrypted secrets, to rotate their key.
-- Invariant: useless without the key. Raises: nothing.
-- Example: select secret, version, key_id from jobq_internal.list_ciphertexts();
create or replace function jobq_internal.list_ciphertexts()
returns table (secret text, version integer, key_id text, ciphertext bytea) language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select d.name, d.version, d.key_id, d.ciphertext
    from jobq_private.definition as d
    where d.type = 'secret'
    order by d.name
$$;
grant execute on function jobq_internal.list_ciphertexts to jobq_operator;
