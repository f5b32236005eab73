-- Revert jobq:private/cron_split from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_split;

commit;
