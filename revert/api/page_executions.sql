-- Revert jobq:api/page_executions from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_executions;

commit;
