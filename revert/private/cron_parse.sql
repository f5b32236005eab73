-- Revert jobq:private/cron_parse from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.cron_parse;

commit;
