-- Revert jobq:workflow_tables from pg
begin;

delete from jobq_private.maintenance_task where task in ('resolved', 'pruned_workflows');
drop type jobq_private.arrow, jobq_private.pending_edge, jobq_private.child_call;
drop table jobq_private.batch, jobq_private.node, jobq_private.pending, jobq_private.edge;
drop table jobq_private.stream_chunk, jobq_private.subscription, jobq_private.waiter, jobq_private.event, jobq_private.step;

commit;
