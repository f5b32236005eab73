-- Revert jobq:private/job_document from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.job_document;

commit;
