-- Verify jobq:http_tables on pg
begin;

select api_key, prefix, key_hash, scopes, expires_at, revoked_at, last_used_at
from jobq_private.api_key where false;
select 1 / (not has_table_privilege('public', 'jobq_private.api_key', 'select'))::int;

rollback;
