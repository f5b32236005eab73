-- Revert jobq:private/schema_violation from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schema_violation;

commit;
