-- Revert jobq:private/archive_jobs from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.archive_jobs;

commit;
