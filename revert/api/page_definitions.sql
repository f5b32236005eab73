-- Revert jobq:api/page_definitions from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_definitions;

commit;
