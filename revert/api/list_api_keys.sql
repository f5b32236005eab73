-- Revert jobq:api/list_api_keys from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_api_keys;

commit;
