-- Revert jobq:private/cron_refuse from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_refuse;

commit;
