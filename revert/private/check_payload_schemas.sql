-- Revert jobq:private/check_payload_schemas from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_payload_schemas;

commit;
