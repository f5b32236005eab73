-- Revert jobq:private/cron_day_of_month from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_day_of_month;

commit;
