-- Revert jobq:view/error from pg
begin;
set local role jobq_owner;

drop view if exists jobq.error;

commit;
