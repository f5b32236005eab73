-- Revert jobq:private/check_endpoint_spec from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_endpoint_spec;

commit;
