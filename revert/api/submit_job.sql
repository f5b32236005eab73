-- Revert jobq:api/submit_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.submit_job;

commit;
