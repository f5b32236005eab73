-- Revert jobq:table/audit from pg
begin;
drop table jobq_private.audit;
commit;
