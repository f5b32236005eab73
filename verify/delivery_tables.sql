-- Verify jobq:delivery_tables on pg
begin;

select type, name, document, ciphertext, key_id, version
from jobq_private.definition where false;
select endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second, version
from jobq_private.endpoint where false;
select endpoint, type, name, is_current from jobq_private.endpoint_definition where false;
select type, name, version, document from jobq_private.definition_version where false;
select type, field, is_needed, meaning, path from jobq_private.spec_field where false;
select 1 / (not has_table_privilege('public', 'jobq_private.definition', 'select'))::int;

rollback;
