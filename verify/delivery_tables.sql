-- Verify jobq:delivery_tables on pg
begin;

select payload_spec, schema, version from jobq_private.payload_spec where false;
select config, entries, version from jobq_private.config where false;
select secret, ciphertext, key_id, version from jobq_private.secret where false;
select endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second, version
from jobq_private.endpoint where false;
select endpoint, secret from jobq_private.endpoint_secret where false;
select type, name, version, document from jobq_private.definition_version where false;
select type, field, is_needed, meaning, path from jobq_private.spec_field where false;
select 1 / (not has_table_privilege('public', 'jobq_private.secret', 'select'))::int;

rollback;
