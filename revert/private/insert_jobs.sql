-- Revert jobq:private/insert_jobs from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.insert_jobs;

commit;
