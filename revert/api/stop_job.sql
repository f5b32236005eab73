-- Revert jobq:api/stop_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.stop_job;

commit;
