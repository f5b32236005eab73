-- Revert jobq:trigger/job_birth from pg
begin;
set local role jobq_owner;

drop trigger if exists job_birth on jobq_private.job;
drop function if exists jobq_private.refuse_forged_birth;

commit;
