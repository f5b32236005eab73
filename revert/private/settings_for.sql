-- Revert jobq:private/settings_for from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.settings_for;

commit;
