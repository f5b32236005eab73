-- Revert jobq:view/job_insert from pg
begin;
set local role jobq_owner;

drop trigger if exists job_insert on jobq.job;
drop function if exists jobq_private.enqueue_from_view;

commit;
