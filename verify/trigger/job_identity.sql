-- Verify jobq:trigger/job_identity on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'refuse_change';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.job'::regclass
and t.tgname = 'job_identity';

rollback;
