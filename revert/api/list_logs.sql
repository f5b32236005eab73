-- Revert jobq:api/list_logs from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_logs;

commit;
