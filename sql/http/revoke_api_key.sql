-- Purpose: Revokes an API key.
-- Invariant: the row stays with its name and its last use; revoking it again changes
-- nothing. Raises: 22004, JQ007.
-- Argument name: the key's name.
-- Example: select jobq_http.revoke_api_key('web');
create or replace function jobq_http.revoke_api_key(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if revoke_api_key.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    end if;
    update jobq_private.api_key as k
    set revoked_at = coalesce(k.revoked_at, now())
    where k.api_key = revoke_api_key.name;
    if not found then
        perform jobq_private.raise_error(
            'API_KEY_NOT_FOUND', format('name %s', revoke_api_key.name)
        );
    end if;
end
$$;

grant execute on function jobq_http.revoke_api_key to jobq_operator;
