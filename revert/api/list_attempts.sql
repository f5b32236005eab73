-- Revert jobq:api/list_attempts from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_attempts;

commit;
