-- Revert jobq:api/revise_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.revise_job;

commit;
