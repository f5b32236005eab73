-- Revert jobq:trigger/archive_birth from pg
begin;
set local role jobq_owner;

drop trigger if exists archive_birth on jobq_private.job_archive;
drop function if exists jobq_private.refuse_unfinished;

commit;
