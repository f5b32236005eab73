-- Revert jobq:api/pause_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.pause_schedule;

commit;
