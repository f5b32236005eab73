-- Revert jobq:table/worker from pg
begin;
drop table jobq_private.region_status, jobq_private.worker;
commit;
