-- Revert jobq:view/job from pg
begin;
set local role jobq_owner;

drop view if exists jobq.job;

commit;
