-- Revert jobq:schedule_tables from pg
begin;

drop table jobq_private.schedule;

commit;
