-- Revert jobq:type/cron from pg
begin;

drop type jobq_private.cron;

commit;
