-- Revert jobq:private/store_jobs from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.store_jobs;

commit;
