-- Verify jobq:roles on pg
begin;

select 1 / (count(*) = 5)::int
from pg_catalog.pg_roles as r
where r.rolname in (
    'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
)
and not r.rolcanlogin;

rollback;
