-- Revert jobq:workflow_tables from pg
begin;

drop type jobq_private.arrow;
drop table jobq_private.batch, jobq_private.node, jobq_private.look, jobq_private.edge;
drop table jobq_private.late_event, jobq_private.waiter, jobq_private.event, jobq_private.step;

commit;
