-- Revert jobq:table/schedule from pg
begin;
drop table jobq_private.schedule;
commit;
