-- Verify jobq:private/retry_policy_for on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'retry_policy_for';

rollback;
