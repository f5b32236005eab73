-- Verify jobq:grant_policies on pg
-- One transaction makes all policies, so those of one table stand for the others.
begin;

select 1 / (count(*) = 4)::integer
from pg_catalog.pg_policies as p
where p.schemaname = 'jobq_private' and p.tablename = 'job';

rollback;
