-- Revert jobq:api/tick from pg
begin;
set local role jobq_owner;

drop function if exists jobq.tick;

commit;
