-- Purpose: Revokes an API key.
-- Invariant: the row stays with its name and its last use; revoking it again changes
-- nothing. Raises: 22004, JQ007.
-- Example: select jobq_http.revoke_api_key('web');
create or replace function jobq_http.revoke_api_key(name text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('name', num_nulls(revoke_api_key.name));
    update jobq_private.api_key as k
    set revoked_at = coalesce(k.revoked_at, now())
    where k.api_key = revoke_api_key.name;
    perform jobq_private.check_problem('API_KEY_NOT_FOUND', case
        when not found then 'name ' || revoke_api_key.name
    end);
end
$$;
grant execute on function jobq_http.revoke_api_key to jobq_operator;
