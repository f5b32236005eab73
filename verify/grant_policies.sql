-- Verify jobq:grant_policies on pg
begin;

select 1 / (count(*) = 66)::integer
from pg_catalog.pg_policies as p
where p.schemaname = 'jobq_private';

rollback;
