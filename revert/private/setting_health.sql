-- Revert jobq:private/setting_health from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.setting_health;

commit;
