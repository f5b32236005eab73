-- Revert jobq:api/health from pg
begin;
set local role jobq_owner;

drop function if exists jobq.health;

commit;
