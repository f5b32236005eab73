-- Verify jobq:schemas on pg
begin;

select 1 / (count(*) = 5)::int
from pg_catalog.pg_roles as r
where r.rolname in (
    'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
)
and not r.rolcanlogin;

select 1 / (
    has_schema_privilege('jobq_reader', 'jobq', 'usage')
    and has_schema_privilege('jobq_reader', 'jobq_http', 'usage')
    and has_schema_privilege('jobq_reader', 'jobq_internal', 'usage')
    and not has_schema_privilege('jobq_reader', 'jobq', 'create')
    and not has_schema_privilege('jobq_worker', 'jobq_private', 'usage')
)::int;

rollback;
