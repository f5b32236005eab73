-- Revert jobq:api/list_payload_schemas from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_payload_schemas;

commit;
