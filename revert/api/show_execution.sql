-- Revert jobq:api/show_execution from pg
begin;
set local role jobq_owner;

drop function if exists jobq.show_execution;

commit;
