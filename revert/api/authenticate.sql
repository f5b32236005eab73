-- Revert jobq:api/authenticate from pg
begin;
set local role jobq_owner;

drop function if exists jobq.authenticate;

commit;
