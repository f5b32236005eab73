-- Revert jobq:cron_types from pg
begin;

drop type jobq_private.cron;

commit;
