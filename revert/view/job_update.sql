-- Revert jobq:view/job_update from pg
begin;
set local role jobq_owner;

drop trigger if exists job_update on jobq.job;
drop function if exists jobq_private.update_from_view;

commit;
