-- Revert jobq:table/setting from pg
begin;
drop table jobq_private.kind, jobq_private.queue, jobq_private.setting, jobq_private.retry_preset;
commit;
