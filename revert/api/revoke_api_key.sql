-- Revert jobq:api/revoke_api_key from pg
begin;
set local role jobq_owner;

drop function if exists jobq.revoke_api_key;

commit;
