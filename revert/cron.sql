-- Revert jobq:cron from pg
-- Made by sql/snapshot.py from sql/cron/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_change;

commit;
