-- Revert jobq:delivery from pg
-- Made by sql/snapshot.py from sql/delivery/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.show_definition;
drop function if exists jobq.rotate_secret;
drop function if exists jobq.put_secret;
drop function if exists jobq.put_payload_spec;
drop function if exists jobq.put_endpoint;
drop function if exists jobq.put_config;
drop function if exists jobq.page_definitions;
drop function if exists jobq.list_versions;
drop function if exists jobq.list_ciphertexts;
drop function if exists jobq_private.version_at;
drop function if exists jobq_private.store_endpoint;
drop function if exists jobq_private.begin_definition;

commit;
