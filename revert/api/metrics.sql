-- Revert jobq:api/metrics from pg
begin;
set local role jobq_owner;

drop function if exists jobq.metrics;

commit;
