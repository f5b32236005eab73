-- Revert jobq:private/store_endpoint from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.store_endpoint;

commit;
