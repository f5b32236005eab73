-- Revert jobq:schema from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop trigger if exists kind_schema on jobq_private.kind;
drop function if exists jobq_private.kind_schema;
drop function if exists jobq_private.schema_violation;
drop function if exists jobq_private.schema_problem;
drop function if exists jobq_private.pattern_problem;
drop function if exists jobq_private.object_violation;
drop function if exists jobq_private.matches_pattern;
drop function if exists jobq_private.json_schema_violation;

commit;
