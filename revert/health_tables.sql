-- Revert jobq:health_tables from pg
begin;

drop table jobq_private.waiting_count, jobq_private.total, jobq_private.history_mark, jobq_private.latency, jobq_private.history;

commit;
