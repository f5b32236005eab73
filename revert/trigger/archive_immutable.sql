-- Revert jobq:trigger/archive_immutable from pg
begin;
set local role jobq_owner;

drop trigger if exists archive_immutable on jobq_private.job_archive;
drop function if exists jobq_private.guard_archive;

commit;
