-- Revert jobq:api/preview_cron from pg
begin;
set local role jobq_owner;

drop function if exists jobq.preview_cron;

commit;
