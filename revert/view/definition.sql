-- Revert jobq:view/definition from pg
begin;
set local role jobq_owner;

drop view if exists jobq_private.definition;

commit;
