-- Revert jobq:private/json_schema_violation from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.json_schema_violation;

commit;
