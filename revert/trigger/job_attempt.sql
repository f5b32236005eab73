-- Revert jobq:trigger/job_attempt from pg
begin;
set local role jobq_owner;

drop trigger if exists job_attempt on jobq_private.job;
drop function if exists jobq_private.record_attempt;

commit;
