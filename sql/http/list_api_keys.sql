-- Purpose: Returns the API keys: names, prefixes, scopes and last use, never the key.
-- Invariant: reads only. Raises: nothing.
-- Example: select * from jobq_http.list_api_keys();
create or replace function jobq_http.list_api_keys()
returns table (
    name text,
    prefix text,
    scopes text[],
    requests_per_second integer,
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select
        k.api_key, k.prefix, k.scopes, k.requests_per_second, k.created_at,
        k.expires_at, k.revoked_at, k.last_used_at
    from jobq_private.api_key as k
    order by k.created_at, k.api_key
$$;
grant execute on function jobq_http.list_api_keys to jobq_operator;
