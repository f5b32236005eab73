-- Revert jobq:view/schedule from pg
begin;
set local role jobq_owner;

drop view if exists jobq.schedule;

commit;
