-- Revert jobq:setting_tables from pg
begin;

drop type jobq_private.retry_policy, jobq_private.settings;
drop table jobq_private.paused_kind, jobq_private.kind_retry, jobq_private.kind, jobq_private.queue, jobq_private.setting, jobq_private.retry_preset;
drop type jobq_private.budget;

commit;
