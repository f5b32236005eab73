-- Revert jobq:api/show_definition from pg
begin;
set local role jobq_owner;

drop function if exists jobq.show_definition;

commit;
