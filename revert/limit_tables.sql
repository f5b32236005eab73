-- Revert jobq:limit_tables from pg
begin;

drop type jobq_private.lane_batch;
drop table jobq_private.key_limit, jobq_private.lane_call, jobq_private.lane;

commit;
