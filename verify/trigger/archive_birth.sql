-- Verify jobq:trigger/archive_birth on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'refuse_unfinished';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.job_archive'::regclass
and t.tgname = 'archive_birth';

rollback;
