-- Revert jobq:trigger/job_identity from pg
begin;
set local role jobq_owner;

drop trigger if exists job_identity on jobq_private.job;
drop function if exists jobq_private.refuse_change;

commit;
