-- Revert jobq:table/transition from pg
begin;
drop table jobq_private.transition;
commit;
