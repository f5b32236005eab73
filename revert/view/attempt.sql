-- Revert jobq:view/attempt from pg
begin;
set local role jobq_owner;

drop view if exists jobq.attempt;

commit;
