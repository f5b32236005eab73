-- Verify jobq:trigger/kind_queue on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'copy_kind_queue';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.kind'::regclass
and t.tgname = 'kind_queue';

rollback;
