-- Revert jobq:trigger/archive_redrive from pg
begin;
set local role jobq_owner;

drop trigger if exists archive_redrive on jobq_private.job_archive;
drop function if exists jobq_private.redrive_archived;

commit;
