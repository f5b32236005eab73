-- Revert jobq:api/log from pg
begin;
set local role jobq_owner;

drop function if exists jobq.log;

commit;
