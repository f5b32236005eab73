-- Revert jobq:api/rotate_secret from pg
begin;
set local role jobq_owner;

drop function if exists jobq.rotate_secret;

commit;
