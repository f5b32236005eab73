-- Verify jobq:api/list_queue_grants on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq'::regnamespace
and p.proname = 'list_queue_grants';

rollback;
