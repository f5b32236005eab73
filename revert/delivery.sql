-- Revert jobq:delivery from pg
-- Made by sql/snapshot.py from sql/delivery/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.test_endpoint;
drop function if exists jobq.show_definition;
drop function if exists jobq.rotate_secret;
drop function if exists jobq.resume_endpoint;
drop function if exists jobq.put_secret;
drop function if exists jobq.put_payload_spec;
drop function if exists jobq.put_endpoint;
drop function if exists jobq.put_config;
drop function if exists jobq.pause_endpoint;
drop function if exists jobq.page_definitions;
drop function if exists jobq.list_versions;
drop function if exists jobq.list_undeliverable;
drop function if exists jobq.list_ciphertexts;
drop function if exists jobq.get_delivery;
drop function if exists jobq.endpoint_stats;
drop function if exists jobq.delete_definition;
drop view if exists jobq_private.definition;
drop function if exists jobq_private.version_at;
drop function if exists jobq_private.template_references;
drop function if exists jobq_private.takes_input;
drop function if exists jobq_private.store_endpoint_kind;
drop function if exists jobq_private.store_endpoint;
drop function if exists jobq_private.spec_field;
drop function if exists jobq_private.shared_pattern_problem;
drop function if exists jobq_private.schema_keyword;
drop function if exists jobq_private.retry_document;
drop function if exists jobq_private.refuse_definition;
drop function if exists jobq_private.record_version;
drop function if exists jobq_private.pin_delivery;
drop function if exists jobq_private.parked_until;
drop function if exists jobq_private.park_delivery;
drop function if exists jobq_private.needed_by_jobs;
drop function if exists jobq_private.json_schema_problem;
drop function if exists jobq_private.is_sendable_url;
drop function if exists jobq_private.endpoint_type;
drop function if exists jobq_private.endpoint_schema;
drop function if exists jobq_private.endpoint_rate;
drop function if exists jobq_private.check_references;
drop function if exists jobq_private.check_endpoints;
drop function if exists jobq_private.check_endpoint_spec;
drop function if exists jobq_private.definition_problem;
drop function if exists jobq_private.begin_definition;

commit;
