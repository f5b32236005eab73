-- Revert jobq:api/list_jobs from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_jobs;

commit;
