-- Verify jobq:private/json_schema_violation on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'json_schema_violation';

rollback;
