-- Revert jobq:roles from pg
begin;

-- The roles stay: they belong to the cluster, and another database may use them.
select 1;

commit;
