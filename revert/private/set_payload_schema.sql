-- Revert jobq:private/set_payload_schema from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.set_payload_schema;

commit;
