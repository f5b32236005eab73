-- Revert jobq:private/cron_first from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_first;

commit;
