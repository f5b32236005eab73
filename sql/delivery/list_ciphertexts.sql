-- Purpose: Returns all encrypted secrets, to rotate their key.
-- Invariant: useless without the key. Raises: nothing.
-- Example: select secret, version, key_id from jobq_internal.list_ciphertexts();
create or replace function jobq_internal.list_ciphertexts()
returns table (secret text, version integer, key_id text, ciphertext bytea)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.secret, s.version, s.key_id, s.ciphertext
    from jobq_private.secret as s
    order by s.secret
$$;

grant execute on function jobq_internal.list_ciphertexts to jobq_operator;
