-- Revert jobq:trigger/job_transition from pg
begin;
set local role jobq_owner;

drop trigger if exists job_transition on jobq_private.job;
drop function if exists jobq_private.stamp_transition;

commit;
