-- Revert jobq:private/endpoint_schema from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.endpoint_schema;

commit;
