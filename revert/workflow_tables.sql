-- Revert jobq:workflow_tables from pg
begin;

drop table jobq_private.late_event, jobq_private.waiter, jobq_private.event, jobq_private.step;

commit;
