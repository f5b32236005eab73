-- Revert jobq:view/audit from pg
begin;
set local role jobq_owner;

drop view if exists jobq.audit;

commit;
