-- Revert jobq:private/cron_next from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_next;

commit;
