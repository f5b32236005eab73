-- Revert jobq:admin_tables from pg
begin;

delete from jobq_private.maintenance_task where task in ('healed', 'rolled_up');
drop table jobq_private.deployed_object, jobq_private.waiting_count, jobq_private.total, jobq_private.history_mark, jobq_private.latency, jobq_private.history;
drop type jobq_private.finding;

commit;
