-- Revert jobq:audit_tables from pg
begin;

drop table jobq_private.audit;

commit;
