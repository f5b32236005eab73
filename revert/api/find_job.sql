-- Revert jobq:api/find_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.find_job;

commit;
