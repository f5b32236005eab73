-- Revert jobq:api/put_secret from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_secret;

commit;
