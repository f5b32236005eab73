-- Purpose: Returns name and scopes of the API key with this SHA-256, or no row.
-- Invariant: looked up by the hash of a random key, so timing reveals nothing about other keys.
-- The last use is written at most once a minute, without waiting for locks. While grants by queue
-- are enforced, a key works only at servers with the login that created it. Raises: nothing.
-- Returns: one row; none if the key is unknown, expired or revoked.
-- Example: select * from jobq_http.authenticate(sha256('a key'));
create or replace function jobq_http.authenticate(key_hash bytea)
returns table (name text, scopes text[], requests_per_second integer) language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
    _key jobq_private.api_key;
begin
    select k.* into _key
    from jobq_private.api_key as k
    where k.key_hash = authenticate.key_hash
    and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > clock_timestamp())
    and (k.login = session_user or not row_security_active('jobq_private.api_key'));
    if not found then
        return;
    end if;

    if coalesce(_key.last_used_at, '-infinity') < clock_timestamp() - interval '1 min' then
        update jobq_private.api_key as k
        set last_used_at = clock_timestamp()
        where k.api_key = (
            select u.api_key
            from jobq_private.api_key as u
            where u.api_key = _key.api_key
            for update skip locked
        );
    end if;
    return query select _key.api_key, _key.scopes, _key.requests_per_second;
end
$$;
grant execute on function jobq_http.authenticate to jobq_reader;
