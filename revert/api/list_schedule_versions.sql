-- Revert jobq:api/list_schedule_versions from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_schedule_versions;

commit;
