-- Revert jobq:private/refuse_definition from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.refuse_definition;

commit;
