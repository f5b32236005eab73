-- Revert jobq:role/roles from pg
-- The roles stay: they belong to the cluster, and another database may use them.
begin;
select 1;
commit;
