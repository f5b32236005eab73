-- Revert jobq:api/page_schedule_versions from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_schedule_versions;

commit;
