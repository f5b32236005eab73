-- Revert jobq:api/delete_secret from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_secret;

commit;
