-- Purpose: Creates an API key with scopes: produce, work, operate, read.
-- Invariant: the database sees only the SHA-256 of the key; the program that creates it (256
-- random bits) shows it once. A name is used only once, even after it was revoked, so that logs
-- stay unambiguous. Raises: 22004, 22023, JQ004.
-- Argument name: the key's name, 1 to 128 characters, never used before.
-- Argument prefix: the first characters of the key, to recognize it; 1 to 16 characters.
-- Argument expires_at: from when on the key is refused; null means never.
-- Argument requests_per_second: maximum requests per second with the key; null means
-- the server's default.
-- Example: select jobq_http.create_api_key('ci', sha256('a key'), 'jobq_a', '{produce,read}');
create or replace function jobq_http.create_api_key(
    name text, key_hash bytea, prefix text, scopes text[], expires_at timestamptz default null,
    requests_per_second integer default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _violated text;
begin
    perform jobq_private.check_given(
        'name, key_hash, prefix and scopes', num_nulls(name, key_hash, prefix, scopes)
    );
    perform jobq_private.check_argument(case
        when create_api_key.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'expires_at must be in the years 1 to 9999'
    end);
    insert into jobq_private.api_key (
        api_key, key_hash, prefix, scopes, expires_at, requests_per_second
    )
    values (
        create_api_key.name, create_api_key.key_hash, create_api_key.prefix,
        create_api_key.scopes, create_api_key.expires_at,
        create_api_key.requests_per_second
    );
exception
    when unique_violation then
        perform jobq_private.raise_error(
            'API_KEY_EXISTS', format('name %s', create_api_key.name)
        );
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;
grant execute on function jobq_http.create_api_key to jobq_operator;
