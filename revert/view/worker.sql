-- Revert jobq:view/worker from pg
begin;
set local role jobq_owner;

drop view if exists jobq.worker;

commit;
