-- Revert jobq:api/page_logs from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_logs;

commit;
