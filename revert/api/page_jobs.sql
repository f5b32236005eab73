-- Revert jobq:api/page_jobs from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_jobs;

commit;
