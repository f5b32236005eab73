-- Revert jobq:private/cron_next_local from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_next_local;

commit;
