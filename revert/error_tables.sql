-- Revert jobq:error_tables from pg
begin;

drop table jobq_private.error;

commit;
