-- Revert jobq:trigger/job_archive from pg
begin;
set local role jobq_owner;

drop trigger if exists job_archive on jobq_private.job;
drop function if exists jobq_private.archive_finished;

commit;
