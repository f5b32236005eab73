-- Revert jobq:api/configure from pg
begin;
set local role jobq_owner;

drop function if exists jobq.configure;

commit;
