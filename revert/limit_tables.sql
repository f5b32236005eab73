-- Revert jobq:limit_tables from pg
begin;

drop type jobq_private.barred_lane, jobq_private.lane_batch, jobq_private.lane_rule, jobq_private.queue_look, jobq_private.lane_bounds;
drop table jobq_private.gate, jobq_private.kind_gate, jobq_private.in_use, jobq_private.key_limit, jobq_private.limit_change, jobq_private.lane_call, jobq_private.lane;

commit;
