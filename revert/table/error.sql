-- Revert jobq:table/error from pg
begin;
drop table jobq_private.error;
commit;
