-- Revert jobq:private/begin_definition from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.begin_definition;

commit;
