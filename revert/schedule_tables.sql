-- Revert jobq:schedule_tables from pg
begin;

delete from jobq_private.maintenance_task where task in ('ticked');
drop table jobq_private.schedule;

drop type jobq_private.cron;

commit;
