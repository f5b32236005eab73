-- Revert jobq:private/endpoint_type from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.endpoint_type;

commit;
