-- Revert jobq:api/create_api_key from pg
begin;
set local role jobq_owner;

drop function if exists jobq.create_api_key;

commit;
