-- Revert jobq:api/list_versions from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_versions;

commit;
