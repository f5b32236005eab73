-- Verify jobq:private/new_job_problem on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'new_job_problem';

rollback;
