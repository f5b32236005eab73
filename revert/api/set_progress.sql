-- Revert jobq:api/set_progress from pg
begin;
set local role jobq_owner;

drop function if exists jobq.set_progress;

commit;
