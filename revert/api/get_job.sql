-- Revert jobq:api/get_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.get_job;

commit;
